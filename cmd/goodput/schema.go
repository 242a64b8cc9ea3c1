package main

import (
	"encoding/json"
	"io"

	"github.com/goodput/goodput/cmd/goodput/internal/config"
)

// schemaCmd prints the JSON schema of policy files.
type schemaCmd struct{}

// Help is what kong prints below the one line.
func (schemaCmd) Help() string {
	return `With it an editor completes the keys of a policy file and shows what they mean:

  goodput schema > goodput.schema.json

and in the first line of the file

  # yaml-language-server: $schema=./goodput.schema.json

What contradicts what, goodput check alone says.`
}

// Run prints it.
func (schemaCmd) Run(stdout io.Writer) error {
	e := json.NewEncoder(stdout)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(config.Schema())
}
