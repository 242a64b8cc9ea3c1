package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// Where a key belongs that stands one level too high or too low: as the schema has it.

// placeNames say what the mapping under a key is; another is called by its key.
var placeNames = map[string]string{
	"":                 "the top of the file",
	"listen":           "a listener",
	"tls":              "tls of a listener",
	"upstream":         "an upstream",
	"upstreams":        "an upstream",
	"servers":          "a server of an upstream",
	"health":           "health of an upstream",
	"classes":          "a class",
	"match":            "match of a class",
	"deadline_headers": "an item of deadline_headers",
	"rows":             "a row of tenants",
	"others":           "others of tenants",
}

// homes returns, for each key, the mappings that know it, in words.
func homes() map[string][]string {
	root, all := Schema(), map[string][]string{}
	var walk func(s *jsonschema.Schema, name string)
	walk = func(s *jsonschema.Schema, name string) {
		if s == nil {
			return
		}
		walk(definition(root, s), name)
		for _, key := range s.PropertyOrder {
			if name != "" || s.Properties[key].Ref != "#/$defs/class_"+key { // at the top it is of a class as well
				if place := placeOf(s, name); !slices.Contains(all[key], place) {
					all[key] = append(all[key], place)
				}
			}
			if key != "defaults" { // what it has, a class has
				walk(s.Properties[key], key)
			}
		}
		walk(s.Items, name)
		walk(s.AdditionalProperties, name)
		for _, alternative := range s.AnyOf {
			walk(alternative, name)
		}
	}
	walk(root, "")
	return all
}

func placeOf(s *jsonschema.Schema, name string) string {
	switch law, place := s.Properties["law"], placeNames[name]; {
	case law != nil:
		return fmt.Sprintf("limit with law: %v", law.Enum[0])
	case s.Properties["url"] != nil:
		return placeNames["servers"]
	case place != "":
		return place
	}
	return name
}

// definition returns what a reference of s refers to, or nil.
func definition(root, s *jsonschema.Schema) *jsonschema.Schema {
	name, _ := strings.CutPrefix(s.Ref, "#/$defs/")
	return root.Defs[name]
}
