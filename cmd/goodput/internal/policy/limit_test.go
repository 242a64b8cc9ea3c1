package policy

import (
	"strings"
	"testing"
	"time"

	"github.com/goodput/goodput/limit"
)

// Every form of a limit, in a file and as a flag, is the same law.
func TestLimitForms(t *testing.T) {
	for _, c := range []struct {
		file, flag string
		want       limit.Law
		number     int
	}{
		{"60", "60", limit.Fixed(60), 60},
		{"1048576", "1048576", limit.Fixed(limit.Max), limit.Max},
		{"auto", "auto", limit.Auto{}, 0},
		{`"auto"`, "auto", limit.Auto{}, 0},
		{"{law: auto}", "auto", limit.Auto{}, 0},
		{"{law: auto, max: 200}", "auto:max=200", limit.Auto{Max: 200}, 0},
		{"{law: auto, from: 20, min: 1, max: 1000}", "auto:from=20,min=1,max=1000", limit.Auto{From: 20, Min: 1, Max: 1000}, 0},
		{"{law: auto, min: 3, from: 3, max: 3}", "auto:min=3,from=3,max=3", limit.Auto{From: 3, Min: 3, Max: 3}, 0},
		{"{law: auto, shared: true}", "auto:shared=true", limit.Auto{Shared: true}, 0},
		{"{law: auto, shared: false}", "auto:shared=false", limit.Auto{}, 0},
		{"{law: auto, max: 40, shared: true}", "auto:max=40,shared=true", limit.Auto{Max: 40, Shared: true}, 0},
		{"aimd", "aimd", limit.AIMD{}, 0},
		{
			"{law: aimd, from: 30, min: 10, max: 90, backoff: 0.8, timeout: 2s, window: 500ms}",
			"aimd:from=30,min=10,max=90,backoff=0.8,timeout=2s,window=500ms",
			limit.AIMD{From: 30, Min: 10, Max: 90, Backoff: 0.8, Timeout: 2 * time.Second, Window: 500 * time.Millisecond},
			0,
		},
		{"vegas", "vegas", limit.Vegas{}, 0},
		{
			"{law: vegas, from: 30, min: 10, max: 90, alpha: 2, beta: 4.5, smoothing: 0.5, probe: 60, window: 2s}",
			"vegas:from=30,min=10,max=90,alpha=2,beta=4.5,smoothing=0.5,probe=60,window=2s",
			limit.Vegas{From: 30, Min: 10, Max: 90, Alpha: 2, Beta: 4.5, Smoothing: 0.5, Probe: 60, Window: 2 * time.Second},
			0,
		},
		{"gradient2", "gradient2", limit.Gradient2{}, 0},
		{
			"{law: gradient2, from: 30, min: 10, max: 90, queue: 6, tolerance: 2, smoothing: 0.5, long: 100, drift: 0.9, window: 2s}",
			"gradient2:from=30,min=10,max=90,queue=6,tolerance=2,smoothing=0.5,long=100,drift=0.9,window=2s",
			limit.Gradient2{From: 30, Min: 10, Max: 90, Queue: 6, Tolerance: 2, Smoothing: 0.5, Long: 100, Drift: 0.9, Window: 2 * time.Second},
			0,
		},
	} {
		got, err := read(t, Policy{}, "limit: "+c.file)
		if err != nil || got.Limiter.Limit != c.want {
			t.Errorf("limit: %s is %#v, %v", c.file, got.Limiter.Limit, err)
		}
		var l Limit
		if err := l.UnmarshalText([]byte(c.flag)); err != nil || l.Law != c.want || l.String() != c.flag || l.Fixed() != c.number {
			t.Errorf("--limit %s is %#v, %v, %d, %v", c.flag, l.Law, l, l.Fixed(), err)
		}
	}
}

// Of a resource that others use as well the limit begins lower, unless it is told where to.
func TestSharedBegins(t *testing.T) {
	for flag, want := range map[string]int{
		"auto": 20, "auto:shared=false": 20, "auto:shared=true": 4, "auto:shared=true,from=9": 9, "auto:shared=true,max=3": 3,
	} {
		var l Limit
		if err := l.UnmarshalText([]byte(flag)); err != nil {
			t.Errorf("--limit %s: %v", flag, err)
			continue
		}
		if n, err := l.Law.Start(); err != nil || n != want {
			t.Errorf("--limit %s begins at %d, %v, want %d", flag, n, err, want)
		}
	}
}

// A limit that is read over another takes its place, constants included; one that
// cannot be read leaves it.
func TestLimitIsReadOver(t *testing.T) {
	base, err := read(t, Policy{}, "limit: {law: auto, max: 200}")
	if err != nil {
		t.Fatal(err)
	}
	for src, want := range map[string]limit.Law{
		"limit: auto":            limit.Auto{},
		"limit: 60":              limit.Fixed(60),
		"objective: 400ms":       limit.Auto{Max: 200},
		"limit: many":            limit.Auto{Max: 200},
		"limit: {law: auto, x:}": limit.Auto{Max: 200},
	} {
		if got, _ := read(t, base, src); got.Limiter.Limit != want {
			t.Errorf("%s: %#v, want %#v", src, got.Limiter.Limit, want)
		}
	}
}

// C041, C036: a limit that begins outside its own bounds, or has a bound that is none, is
// refused where it is read: in a sentence with the line, the key, the value and what is
// allowed. The floor and the start are two settings.
func TestWrongLimit_C041_C036(t *testing.T) {
	const name = "1:" // of the line
	for file, says := range map[string][]string{
		"{law: auto, from: 1000, max: 200}":     {"1000", "200"},
		"{law: auto, min: 50, max: 20}":         {"min 50", "max 20"},
		"{law: auto, from: 2, min: 3, max: 5}":  {"2", "3 to 5"},
		"{law: auto, from: 20, min: 3, max: 5}": {"20", "3 to 5"},
		"{law: auto, min: 0}":                   {`min "0" is not a whole number of 1 to 1048576`},
		"{law: auto, from: -1}":                 {`from "-1" is not a whole number of 1 to 1048576`},
		"{law: auto, max: 1048577}":             {`max "1048577" is not a whole number of 1 to 1048576`},
		"{law: auto, max: 1.5}":                 {`max "1.5" is not a whole number`},
		"{law: auto, max:}":                     {"max has no value"},
		"{law: auto, maximum: 3}":               {"maximum is unknown"},
		"{law: auto, shared: yes}":              {`shared "yes" is neither true nor false`},
		"{law: auto, shared: 4}":                {`shared "4" is neither true nor false`},
		`{law: auto, shared: "true"}`:           {`shared "true" is text`},
		"{law: auto, shared:}":                  {"shared has no value"},
		"{law: aimd, shared: true}":             {"shared is unknown"}, // it has no such thing
		"{law: vegas, alpha: 5, beta: 4}":       {"beta"},              // the library knows
		"{law: aimd, backoff: 1}":               {`backoff "1" is not a number of 0.5 to 0.99`},
		"{law: aimd, alpha: 3}":                 {"alpha is unknown: backoff, from, law, max, min, timeout or window"},
		"{law: atuo}":                           {`law "atuo" is unknown, did you mean auto?`},
		"{law: 60}":                             {`law "60" is unknown`},
		"{max: 200}":                            {"law is missing: for example law: auto"},
		"{}":                                    {"law is missing"},
		"0":                                     {`limit "0" is not a whole number of 1 to 1048576, auto`},
		"-5":                                    {`limit "-5" is not`},
		`"60"`:                                  {`limit "60" is text`},
		"Auto":                                  {`limit "Auto" is not`},
		"auto:max=200":                          {`limit "auto:max=200" is not`, "{law: auto, max: 200}"}, // the form of the flag
		"[auto]":                                {"limit is a list"},
		"":                                      {"limit has no value"},
		"{law: auto, max: 99999999999999999999999999999999}": {"max"},
	} {
		_, err := read(t, Policy{}, "limit: "+file)
		if err == nil {
			t.Errorf("limit: %s is taken", file)
			continue
		}
		for _, word := range append(says, name) {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("limit: %s: %v\ndoes not say %s", file, err, word)
			}
		}
	}
	for flag, says := range map[string]string{
		"":                          `"" is not a limit: a number such as 60, auto, or a law with its constants, such as auto:max=200`,
		"0":                         `"0" is not a whole number of 1 to 1048576`,
		"-5":                        `"-5" is not a whole number`,
		"1e9":                       `"1e9" is not a whole number`,
		"NaN":                       `"NaN" is not a whole number`,
		"many":                      `"many" is not a whole number of 1 to 1048576, auto, aimd, vegas, gradient2, or one of these with its constants, such as auto:max=200`,
		"60 # of them":              `is not a limit`,
		"60\nobjective: 1s":         `is not a limit`,
		"{law: auto}":               `is not a limit`,
		"auto,max=200":              `is not a limit`,
		"auto:":                     `"" of "auto:" is not a constant with a value, such as max=200`,
		"auto:200":                  `"200" of "auto:200" is not a constant`,
		"auto:max":                  `"max" of "auto:max" is not a constant`,
		"auto:max=":                 `"max=" of "auto:max=" is not a constant`,
		"auto:=3":                   `is not a constant`,
		"auto:max=200,":             `is not a constant`,
		"auto:max=a:b":              `is not a constant`,
		"auto:max=0":                `max "0" is not a whole number of 1 to 1048576`,
		"auto:top=200":              `top is unknown`,
		"auto:shared":               `"shared" of "auto:shared" is not a constant with a value, such as max=200`,
		"auto:shared=1":             `shared "1" is neither true nor false`,
		"aimd:shared=true":          `shared is unknown`,
		"auto:max=3,max=4":          `max`,
		"auto:law=auto":             `law`,
		"auto:min=50,max=20":        `min 50 of the auto limit is above its max 20`,
		"auto:from=1000,max=200":    `1000`,
		"atuo:max=3":                `law "atuo" is unknown, did you mean auto?`,
		"60:max=3":                  `law "60" is unknown`,
		"-":                         ``,
		"auto:max=-":                ``,
		strings.Repeat("9", 10_000): `is not a limit`,
	} {
		var l Limit
		err := l.UnmarshalText([]byte(flag))
		if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "\n") || len(err.Error()) > 300 {
			t.Errorf("--limit %.50s: %v, want %s", flag, err, says)
		}
		if l.Law != nil {
			t.Errorf("--limit %.50s is %v all the same", flag, l.Law)
		}
	}
}

// Whatever the text is, a flag is a law that the library takes, or one sentence.
func FuzzLimit(f *testing.F) {
	for _, s := range []string{"60", "auto", "auto:max=200", "auto:from=1,min=1,max=1", "auto:max=~", "auto:shared=true", "null", "a:b=.", "%=:,"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var l Limit
		err := l.UnmarshalText([]byte(text))
		switch {
		case err == nil:
			if n, err := l.Law.Start(); err != nil || n < 1 {
				t.Errorf("%q starts at %d, %v", text, n, err)
			}
		case strings.Contains(err.Error(), "\n"):
			t.Errorf("%q: %v", text, err)
		}
	})
}
