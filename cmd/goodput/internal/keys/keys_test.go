package keys

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
)

// Each kind of value takes what it is, as JSON has it, and nothing else that could be told.
func TestKinds(t *testing.T) {
	object := Object("", 1, Key{"a", Whole("", 1, 2)}, Key{"b", Bool("")})
	for name, c := range map[string]struct {
		schema    *jsonschema.Schema
		good, bad []string
	}{
		"duration": {Duration("", time.Millisecond, time.Hour, "none"), []string{`"400ms"`, `"1m30s"`, `".5s"`, `"+2s"`, `"none"`}, []string{`400`, `"400"`, `"fast"`, `""`, `true`, `0`, `["1s"]`}},
		"pause":    {Duration("", 0, time.Hour), []string{`0`, `"0"`, `"0s"`}, []string{`1`, `"none"`}},
		"size":     {Size(""), []string{`4096`, `"64KiB"`, `"1.5GB"`, `"7"`, `"7B"`}, []string{`0`, `-1`, `"KiB"`, `"3 MiB"`, `1.5`}},
		"whole":    {Whole("", 1, 9, "auto"), []string{`1`, `9`, `"auto"`}, []string{`0`, `10`, `1.5`, `"1"`, `"none"`}},
		"number":   {Number("", 0.5, 1), []string{`0.5`, `1`}, []string{`0.4`, `"0.5"`}},
		"part":     {Part(""), []string{`0.2`, `"20%"`, `0`, `1`}, []string{`1.1`, `"20"`}},
		"rate":     {Rate(""), []string{`"1200/s"`, `"90/min"`, `"1e3/h"`}, []string{`1200`, `"1200"`, `"/s"`, `"5/d"`}},
		"word":     {Word("", "a", "b"), []string{`"a"`}, []string{`"c"`, `1`}},
		"text":     {Text("", "^x"), []string{`"xy"`, `7`, `true`}, []string{`"y"`, `[]`, `null`}},
		"string":   {String("", "^x"), []string{`"x"`}, []string{`7`}},
		"list":     {List("", 2, Bool("")), []string{`[true]`, `[true, false]`}, []string{`[]`, `true`, `[1]`, `[true, true, true]`}},
		"several":  {Several("", 2, Bool("")), []string{`[true]`, `true`}, []string{`[]`, `1`}},
		"object":   {object, []string{`{"a": 1}`, `{"a": 2, "b": true}`}, []string{`{}`, `{"b": true}`, `{"a": 1, "c": 1}`, `[]`, `{"a": 3}`}},
		"mapping":  {Mapping("", "^[a-z]+$", Bool("")), []string{`{}`, `{"x": true}`}, []string{`{"X": true}`, `{"x": 1}`}},
		"none":     {None(), nil, []string{`1`, `{}`, `null`}},
	} {
		schema, err := c.schema.Resolve(nil)
		if err != nil {
			t.Fatal(name, err)
		}
		takes := func(text string) bool {
			var v any
			if err := json.Unmarshal([]byte(text), &v); err != nil {
				t.Fatal(text, err)
			}
			return schema.Validate(v) == nil
		}
		for _, text := range c.good {
			if !takes(text) {
				t.Errorf("%s does not take %s", name, text)
			}
		}
		for _, text := range c.bad {
			if takes(text) {
				t.Errorf("%s takes %s", name, text)
			}
		}
	}
}

// A range is in the text, where a pattern cannot have it.
func TestRangesAreSaid(t *testing.T) {
	for want, s := range map[string]*jsonschema.Schema{
		"Wait. Duration: 1ms to 24h, or none.": Duration("Wait.", time.Millisecond, 24*time.Hour, "none"),
		"Many. Whole number: 1 to 9.":          Whole("Many.", 1, 9),
		"Some. Number: 0.5 to 0.999.":          Number("Some.", 0.5, 0.999),
	} {
		if s.Description != want {
			t.Errorf("%q, want %q", s.Description, want)
		}
	}
}
