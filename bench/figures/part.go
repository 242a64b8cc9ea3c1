package figures

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// A Machine is what a part ran on. It has no name and no address.
type Machine struct {
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"`
	Kernel string `json:"kernel"`
	Go     string `json:"go"` // version, system and architecture
}

func (m Machine) String() string {
	return fmt.Sprintf("%s, %d processors, %s, %s", m.CPU, m.Cores, m.Kernel, m.Go)
}

// A Head says how the data of a part came about.
type Head struct {
	Part     string            `json:"part"`
	Command  string            `json:"command"`        // to be run in the folder bench
	Commit   string            `json:"commit"`         // that was measured: goodput's version; "+" after it: with changes
	Day      string            `json:"day"`            // on which, as time.DateOnly, in UTC
	Busy     *float64          `json:"busy,omitempty"` // the load average of a minute when it began; nil: unknown
	Seconds  float64           `json:"seconds"`        // that it took
	Quick    bool              `json:"quick,omitempty"`
	Machine  Machine           `json:"machine"`
	Versions map[string]string `json:"versions,omitempty"` // of the rivals
}

// A File is one part of a run.
type File[T any] struct {
	Head
	Data T `json:"data"`
}

// name of the file of a part.
func name(part string) string { return part + ".json" }

// Save writes a part into dir. It is there as a whole or not at all, so a run that is
// interrupted leaves what the last one wrote.
func Save[T any](dir string, f *File[T]) error {
	data, err := json.Marshal(f)
	if err != nil {
		return fmt.Errorf("part %s: %w", f.Part, err)
	}
	fresh := filepath.Join(dir, name(f.Part)+".new")
	if err := os.WriteFile(fresh, append(data, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(fresh, filepath.Join(dir, name(f.Part)))
}

// load reads a part; nil if it is not there. check says what is wrong with data that is
// JSON.
func load[T any](dir fs.FS, part string, check func(*T) error) (*File[T], error) {
	data, err := fs.ReadFile(dir, name(part))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	f := new(File[T])
	in := json.NewDecoder(bytes.NewReader(data))
	if err := in.Decode(f); err != nil {
		return nil, fmt.Errorf("%s is no part of a run: %w", name(part), err)
	}
	if f.Part != part {
		return nil, fmt.Errorf("%s has part %q, want %q", name(part), f.Part, part)
	}
	if err := check(&f.Data); err != nil {
		return nil, fmt.Errorf("%s: %w", name(part), err)
	}
	return f, nil
}
