package main

import (
	"fmt"
	"io"

	"github.com/goodput/goodput/cmd/goodput/internal/build"
)

// versionCmd prints what this binary was built from.
type versionCmd struct{}

func (versionCmd) Run(stdout io.Writer) error {
	_, err := fmt.Fprintln(stdout, build.Read())
	return err
}
