package main

import (
	"log"
	"log/slog"
	"os"

	"golang.org/x/term"
)

// logFlags are the same in every command that logs.
type logFlags struct {
	LogLevel  string `enum:"debug,info,warn,error" default:"info" help:"debug, info, warn or error (${default})."`
	LogFormat string `enum:"auto,text,json" default:"auto" help:"auto (text on a terminal, else json), text or json (${default})."`
}

// logger writes to stderr, which nothing else of a command's result goes to.
func (f logFlags) logger() *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(f.LogLevel)); err != nil {
		panic(err) // kong let only known levels pass
	}
	options := &slog.HandlerOptions{Level: level}
	var out slog.Handler = slog.NewTextHandler(os.Stderr, options)
	if f.LogFormat == "json" || f.LogFormat == "auto" && !term.IsTerminal(int(os.Stderr.Fd())) {
		out = slog.NewJSONHandler(os.Stderr, options)
	}
	// net/http has things to say there about single answers of a service, with what is in
	// them: a line for each is more than a log can take.
	log.SetFlags(0)
	log.SetOutput(slog.NewLogLogger(out, slog.LevelDebug).Writer())
	return slog.New(out)
}
