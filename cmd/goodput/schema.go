package main

import (
	"encoding/json"
	"io"

	"github.com/goodput/goodput/cmd/goodput/internal/config"
)

// schemaCmd prints what a policy file looks like: for editors, or for a reader.
type schemaCmd struct {
	Format string `env:"-" placeholder:"FORMAT" enum:"json,text" default:"json" help:"json, the schema for editors, or text, every key for a reader (${default})."`
}

// Help is what kong prints below the one line.
func (schemaCmd) Help() string {
	return `Every key of a policy file, indented as it is there, with its meaning, unit, range and default:

  goodput schema --format text

As a JSON schema, with which an editor completes the keys and shows what they mean:

  goodput schema > goodput.schema.json

and in the first line of the file

  # yaml-language-server: $schema=./goodput.schema.json

What contradicts what, goodput check alone says.`
}

// Run prints it.
func (c *schemaCmd) Run(stdout io.Writer) error {
	if c.Format == "text" {
		_, err := io.WriteString(stdout, config.Reference())
		return err
	}
	e := json.NewEncoder(stdout)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(config.Schema())
}
