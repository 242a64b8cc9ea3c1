// Package keys has what the values of a policy file look like as JSON schemas (draft
// 2020-12), so that an editor completes keys, shows what they mean, and marks what is
// wrong before anybody runs goodput check.
//
// The model: a value of a file is a duration, a size, a whole number, a word; each has one
// schema here, with its range in the text, since a pattern cannot count. A schema never
// refuses what the reader of the file takes; the reader refuses more, and says it better.
package keys

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/goodput/goodput/cmd/goodput/internal/strictyaml"
)

// A Key is a key of a mapping, and what its value may be.
type Key struct {
	Name  string
	Value *jsonschema.Schema
}

// Object is a mapping that has no keys but these. The first of them need to be there.
func Object(about string, required int, all ...Key) *jsonschema.Schema {
	s := &jsonschema.Schema{
		Type: "object", Description: about,
		Properties:           map[string]*jsonschema.Schema{},
		AdditionalProperties: nothing(),
	}
	for i, k := range all {
		s.Properties[k.Name] = k.Value
		s.PropertyOrder = append(s.PropertyOrder, k.Name)
		if i < required {
			s.Required = append(s.Required, k.Name)
		}
	}
	return s
}

// nothing is the schema that no value has.
func nothing() *jsonschema.Schema { return &jsonschema.Schema{Not: &jsonschema.Schema{}} }

// None is what stands where a value may not be.
func None() *jsonschema.Schema { return nothing() }

// Mapping is one whose keys are names.
func Mapping(about, name string, value *jsonschema.Schema) *jsonschema.Schema {
	return &jsonschema.Schema{
		Type: "object", Description: about, AdditionalProperties: value,
		PropertyNames: &jsonschema.Schema{Pattern: name},
	}
}

// Ref is what definition name says, with words of its own.
func Ref(name, about string) *jsonschema.Schema {
	return &jsonschema.Schema{Ref: "#/$defs/" + name, Description: about}
}

// Duration is one from low to high, or one of the words.
func Duration(about string, low, high time.Duration, words ...string) *jsonschema.Schema {
	about = fmt.Sprintf("%s Duration: %s to %s", about, strictyaml.Short(low), strictyaml.Short(high))
	s := &jsonschema.Schema{Type: "string", Pattern: `^[+]?([0-9.]+(ns|us|µs|μs|ms|s|m|h))+$`}
	if low == 0 {
		s = anyOf(s, &jsonschema.Schema{Enum: []any{0, "0"}})
	}
	return or(s, about, words)
}

// Size is a number of bytes.
func Size(about string) *jsonschema.Schema {
	s := anyOf(
		&jsonschema.Schema{Type: "string", Pattern: `^[0-9.eE+]+([KMGT]iB|[kKMGT]B|B)?$`},
		&jsonschema.Schema{Type: "integer", Minimum: jsonschema.Ptr(1.0), Maximum: jsonschema.Ptr(float64(1 << 50))},
	)
	return or(s, about+" Bytes: a size such as 64KiB, 10MiB or 4096", nil)
}

// Whole is a whole number, or one of the words.
func Whole(about string, low, high int64, words ...string) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "integer", Minimum: jsonschema.Ptr(float64(low)), Maximum: jsonschema.Ptr(float64(high))}
	return or(s, fmt.Sprintf("%s Whole number: %d to %d", about, low, high), words)
}

// Number is a number.
func Number(about string, low, high float64) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "number", Minimum: &low, Maximum: &high}
	return or(s, fmt.Sprintf("%s Number: %v to %v", about, low, high), nil)
}

// Part is a part of a whole.
func Part(about string) *jsonschema.Schema {
	s := anyOf(
		&jsonschema.Schema{Type: "number", Minimum: jsonschema.Ptr(0.0), Maximum: jsonschema.Ptr(1.0)},
		&jsonschema.Schema{Type: "string", Pattern: `^[0-9.eE+-]+%$`},
	)
	return or(s, about+" A part of 0 to 1, such as 0.2 or 20%", nil)
}

// Rate is a number per second, minute or hour.
func Rate(about string) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "string", Pattern: `^[0-9.eE+-]+ *[/](s|min|h)$`, Description: about + " A rate such as 1200/s, 90/min or 10/h."}
}

// Word is one of words.
func Word(about string, words ...string) *jsonschema.Schema {
	s := &jsonschema.Schema{Description: about}
	for _, w := range words {
		s.Enum = append(s.Enum, w)
	}
	return s
}

// Text is any text; YAML takes some of it for numbers.
func Text(about, pattern string) *jsonschema.Schema {
	return &jsonschema.Schema{Types: []string{"string", "number", "boolean"}, Pattern: pattern, Description: about}
}

// String is text that no number looks like.
func String(about, pattern string) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "string", Pattern: pattern, Description: about}
}

// Bool is true or false.
func Bool(about string) *jsonschema.Schema {
	return Default(&jsonschema.Schema{Type: "boolean", Description: about}, false)
}

// List is a list of at most so many.
func List(about string, most int, item *jsonschema.Schema) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "array", Description: about, Items: item, MinItems: jsonschema.Ptr(1), MaxItems: &most}
}

// Several is one, or a list of them.
func Several(about string, most int, item *jsonschema.Schema) *jsonschema.Schema {
	return Either(about, item, List("", most, item.CloneSchemas()))
}

// Either is one of several.
func Either(about string, of ...*jsonschema.Schema) *jsonschema.Schema {
	return &jsonschema.Schema{AnyOf: of, Description: about}
}

// Default says what holds without the key.
func Default(s *jsonschema.Schema, value any) *jsonschema.Schema {
	text, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("keys: default %v of %s: %v", value, s.Description, err))
	}
	s.Default = text
	return s
}

func anyOf(of ...*jsonschema.Schema) *jsonschema.Schema { return &jsonschema.Schema{AnyOf: of} }

// or adds words to what may be there, and both to the text.
func or(s *jsonschema.Schema, about string, words []string) *jsonschema.Schema {
	if len(words) > 0 {
		about += ", or " + strictyaml.Either(words)
		if s.AnyOf == nil {
			s = anyOf(s)
		}
		s.AnyOf = append(s.AnyOf, Word("", words...))
	}
	s.Description = about + "."
	return s
}
