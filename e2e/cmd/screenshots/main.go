//go:build linux

// Command screenshots takes the pictures of the README: an overload of three times what the service
// can do, without protection and with it, as `goodput demo --web` shows it.
//
//	screenshots -program ../bin/goodput -to ../docs/images
//
// It takes a minute, which is what the chart shows. The digits differ from run to run, since clients
// arrive at random; what is to be seen does not.
package main

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/goodput/goodput/e2e/internal/stage"
)

// What the service does in one second, 200 requests, varies by the square root of it: two seconds in
// three are within that, and a picture is of one of them. Without protection nearly nothing of it is
// in time: 3 % of the services are as short as what is left to the next in turn.
const (
	ordinary = 14.0
	full     = 200.0
	nothing  = 0.03 * full
)

func main() {
	program := flag.String("program", "../bin/goodput", "goodput, built")
	chromium := flag.String("chromium", "chromium", "the browser")
	to := flag.String("to", "../docs/images", "the `folder` for the pictures")
	each := flag.Duration("each", 20*time.Second, "how long each part of the story is")
	flag.Parse()
	if err := take(*program, *chromium, *to, *each); err != nil {
		fmt.Fprintln(os.Stderr, "screenshots:", err)
		os.Exit(1)
	}
}

// take runs the program and the browser, and takes the pictures.
func take(program, chromium, to string, each time.Duration) (err error) {
	profile, err := os.MkdirTemp("", "goodput-chromium-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(profile) //nolint:errcheck // a temporary directory
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	p, err := stage.Run(program)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Stop()) }()
	page, err := stage.Open(chromium, profile, p.URL, stage.Width, stage.Height)
	if err != nil {
		return err
	}
	defer page.Close()

	for _, part := range []struct {
		load    float64
		protect bool
		picture string  // at its end
		goodput float64 // on it
	}{
		{0.8, false, "", 0},
		{3, false, stage.Unprotected, nothing},
		{3, true, stage.Protected, full},
	} {
		if err := page.Load(part.load); err != nil {
			return err
		}
		if err := page.Protect(part.protect); err != nil {
			return err
		}
		time.Sleep(each)
		if part.picture == "" {
			continue
		}
		if err := page.Until(40*time.Second, "an ordinary second on a machine that is not busy", func() (bool, error) {
			shown, err := page.Goodput()
			note, wrong := page.Note()
			return note == "" && math.Abs(shown-part.goodput) < ordinary, errors.Join(err, wrong)
		}); err != nil {
			return err
		}
		if err := page.Shot(filepath.Join(to, part.picture)); err != nil {
			return err
		}
		fmt.Println(filepath.Join(to, part.picture))
	}
	return nil
}
