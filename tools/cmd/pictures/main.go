// Command pictures draws what the on-call guide shows: each scene of docs/oncall/scenes is
// played by goodput simulate, which is the code of the product in virtual time, and becomes
// one picture beside it. A seed makes a picture, so drawing again changes nothing unless
// the code has.
//
//	go run ./cmd/pictures ../bin/goodput ../docs/oncall
//
// With -check it draws to nowhere and says which picture is not what its scene looks like now.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
)

// A report is what is drawn of the JSON of goodput simulate.
type report struct {
	Policies []policy `json:"policies"`
}

type policy struct {
	Name    string `json:"name"`
	Classes []struct {
		Name    string `json:"name"`
		Figures struct {
			Ratio struct {
				Mean float64 `json:"mean"`
			} `json:"goodput_ratio"`
		} `json:"figures"`
	} `json:"classes"`
	Series series `json:"series"`
}

// A series has an element per bin. Counts are of the bin, the rest is as of its end.
type series struct {
	End      []float64 `json:"end_seconds"`
	Arrivals []float64 `json:"arrivals"`
	Attempts []float64 `json:"attempts"`
	InTime   []float64 `json:"in_time"`
	Late     []float64 `json:"late"`
	Refused  []float64 `json:"refused"`
	Waiting  []float64 `json:"waiting"`
	Limit    []float64 `json:"limit"`
	Depth    []float64 `json:"depth"`
	Derived  []float64 `json:"derived_depth"`
	Age      []float64 `json:"age_seconds"`
}

func main() {
	check := flag.Bool("check", false, "compare with the pictures that are there")
	flag.Parse()
	if flag.NArg() != 2 {
		fmt.Fprintln(os.Stderr, "usage: pictures [-check] PROGRAM FOLDER: the goodput to play with, and the folder with scenes/*.yaml")
		os.Exit(2)
	}
	plot.DefaultFont = font.Font{Typeface: "Liberation", Variant: "Sans"}
	plotter.DefaultFont = plot.DefaultFont
	if err := all(flag.Arg(0), flag.Arg(1), *check); err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1)
	}
}

func all(program, folder string, check bool) error {
	scenes, err := filepath.Glob(filepath.Join(folder, "scenes", "*.yaml"))
	if err != nil || len(scenes) == 0 {
		return fmt.Errorf("no scenes/*.yaml in %s (%v)", folder, err)
	}
	var stale []string
	for _, scene := range scenes {
		r, err := play(program, scene)
		if err != nil {
			return fmt.Errorf("%s: %w", scene, err)
		}
		name := strings.TrimSuffix(filepath.Base(scene), ".yaml") + ".png"
		picture, err := paint(r)
		if err != nil {
			return fmt.Errorf("%s: %w", scene, err)
		}
		path := filepath.Join(folder, name)
		if !check {
			if err := os.WriteFile(path, picture, 0o644); err != nil {
				return err
			}
			continue
		}
		if was, err := os.ReadFile(path); err != nil || !bytes.Equal(was, picture) {
			stale = append(stale, path)
		}
	}
	if stale != nil {
		return fmt.Errorf("not what their scenes look like now: %s; make pictures draws them", strings.Join(stale, ", "))
	}
	return nil
}

func play(program, scene string) (*report, error) {
	cmd := exec.Command(program, "simulate", "--no-ceilings", "--format", "json", scene)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	r := new(report)
	return r, json.Unmarshal(out, r)
}
