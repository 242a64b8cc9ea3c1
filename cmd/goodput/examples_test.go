package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/goodput/goodput/cmd/goodput/internal/config"
)

var update = flag.Bool("rewrite", false, "write what check says of the examples, and their schema")

const examples = "../../examples/"

// exampleFiles are the examples of policy files.
func exampleFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(examples + "*.yaml")
	if err != nil || len(files) != 4 {
		t.Fatalf("%d examples, %v", len(files), err)
	}
	return files
}

// golden compares text with a file, or writes it.
func golden(t *testing.T, name, text string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if text != string(want) {
		t.Errorf("%s is\n%s\nwant\n%s", name, text, want)
	}
}

// Every example is valid, without a warning, and comes to what its comments say: read
// testdata/check when it changes.
func TestExamplesAreValid(t *testing.T) {
	for _, file := range exampleFiles(t) {
		var stdout, stderr bytes.Buffer
		code := run([]string{"check", file}, &stdout, &stderr)
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		if code != exitOK || stderr.Len() > 0 || strings.Contains(stdout.String(), "warning") {
			t.Errorf("%s: exit %d, %s", name, code, stderr.String())
		}
		golden(t, "testdata/check/"+name+".txt", strings.ReplaceAll(stdout.String(), examples, ""))
		if name != "two-classes" {
			continue
		}
		stdout.Reset() // one as a document: programs read it, so what is in it stays
		if code := run([]string{"check", "--format", "json", file}, &stdout, &stderr); code != exitOK {
			t.Errorf("%s: exit %d", name, code)
		}
		golden(t, "testdata/check/"+name+".json", strings.ReplaceAll(stdout.String(), examples, ""))
	}
}

// The schema beside the examples is the one that goodput schema prints; the examples name
// it, and are what it describes.
func TestExamplesFitTheSchema(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if code := run([]string{"schema"}, &stdout, &stderr); code != exitOK {
		t.Fatalf("exit %d, %s", code, stderr.String())
	}
	golden(t, examples+"goodput.schema.json", stdout.String())
	var text bytes.Buffer
	if code := run([]string{"schema", "--format", "text"}, &text, &stderr); code != exitOK || text.String() != config.Reference() {
		t.Errorf("exit %d, %s\n%s", code, stderr.String(), text.String())
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(stdout.Bytes(), &s); err != nil {
		t.Fatal(err)
	}
	schema, err := s.Resolve(&jsonschema.ResolveOptions{ValidateDefaults: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range exampleFiles(t) {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.HasPrefix(src, []byte("# yaml-language-server: $schema=./goodput.schema.json\n")) {
			t.Errorf("%s does not name its schema", file)
		}
		text, err := yaml.YAMLToJSON(src)
		if err != nil {
			t.Fatal(err)
		}
		var doc any
		if err := json.Unmarshal(text, &doc); err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(doc); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// What the examples say in their comments, as numbers: two classes a thousand times apart,
// and a size from a header of somebody who is believed.
func TestExamplesSayWhatTheyAreFor(t *testing.T) {
	read := func(name string) *config.Config {
		src, err := os.ReadFile(examples + name)
		if err != nil {
			t.Fatal(err)
		}
		cfg, err := config.Read(name, src)
		if err != nil {
			t.Fatal(err)
		}
		return cfg
	}
	two := read("two-classes.yaml").Classes
	if live, reports, lookups := two[0], two[1], two[2]; live.Mode != config.Stream ||
		reports.Limiter.Service != 1000*lookups.Limiter.Service {
		t.Errorf("%+v", two)
	}
	if llm := read("llm.yaml"); llm.Classes[0].Size.Header == "" || len(llm.TrustedProxies) == 0 || llm.Classes[0].Cost.Fixed > 1 {
		t.Errorf("%+v", llm.Classes[0])
	}
	if one := read("one-service.yaml"); len(one.Classes) != 1 {
		t.Errorf("%+v", one)
	}
	if grpc := read("grpc.yaml"); grpc.Classes[1].Match.ContentTypes[0] != "application/grpc" || grpc.Listeners[0].HTTP1 {
		t.Errorf("%+v", grpc)
	}
}
