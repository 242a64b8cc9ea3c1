package dashboard

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// A colour is red, green, blue and alpha, 0 to 1.
type colour [4]float64

var (
	block    = regexp.MustCompile(`:root \{([^}]*)\}`)
	property = regexp.MustCompile(`--([a-z0-9-]+): *([^;]+);`)
)

// schemes returns the colours of the style sheet: of a light screen, and of a dark one, which
// overrides those.
func schemes(t *testing.T) map[string]map[string]colour {
	t.Helper()
	raw, err := page.ReadFile("page/page.css")
	if err != nil {
		t.Fatal(err)
	}
	blocks := block.FindAllStringSubmatch(string(raw), -1)
	if len(blocks) != 2 {
		t.Fatalf("%d blocks of colours, want a light and a dark one", len(blocks))
	}
	light, dark := map[string]colour{}, map[string]colour{}
	for _, p := range property.FindAllStringSubmatch(blocks[0][1], -1) {
		light[p[1]] = parse(t, p[2])
		dark[p[1]] = light[p[1]]
	}
	overridden := 0
	for _, p := range property.FindAllStringSubmatch(blocks[1][1], -1) {
		if _, ok := light[p[1]]; !ok {
			t.Errorf("--%s is there in the dark only", p[1])
		}
		dark[p[1]] = parse(t, p[2])
		overridden++
	}
	if overridden != len(light) {
		t.Errorf("%d of %d colours have one for the dark", overridden, len(light))
	}
	return map[string]map[string]colour{"light": light, "dark": dark}
}

// parse reads #rgb, #rrggbb and #rrggbbaa.
func parse(t *testing.T, s string) colour {
	t.Helper()
	hex := strings.TrimPrefix(s, "#")
	if len(hex) == 3 {
		hex = fmt.Sprintf("%c%c%c%c%c%c", hex[0], hex[0], hex[1], hex[1], hex[2], hex[2])
	}
	if len(hex) == 6 {
		hex += "ff"
	}
	n, err := strconv.ParseUint(hex, 16, 32)
	if err != nil || len(hex) != 8 {
		t.Fatalf("colour %q: %v", s, err)
	}
	var c colour
	for i := range c {
		c[i] = float64(n>>(24-8*i)&0xff) / 255
	}
	return c
}

// over is c with its alpha on ground.
func (c colour) over(ground colour) colour {
	a := c[3]
	for i := range 3 {
		c[i] = a*c[i] + (1-a)*ground[i]
	}
	c[3] = 1
	return c
}

// luminance and contrast are those of WCAG 2.2, "relative luminance" and "contrast ratio".
func (c colour) luminance() float64 {
	var l [3]float64
	for i := range l {
		if l[i] = c[i] / 12.92; c[i] > 0.04045 {
			l[i] = math.Pow((c[i]+0.055)/1.055, 2.4)
		}
	}
	return 0.2126*l[0] + 0.7152*l[1] + 0.0722*l[2]
}

func contrast(a, b colour) float64 {
	x, y := a.luminance(), b.luminance()
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

// Text has 4.5:1 to what it stands on (WCAG 1.4.3), and a line of a chart, the border of a
// control and the mark of the focus 3:1 (1.4.11), on a light screen and on a dark one; a line
// also where the gap is shaded, and text also while it is stale.
func TestContrast(t *testing.T) {
	const text, line = 4.5, 3
	for scheme, all := range schemes(t) {
		gap := all["gap"].over(all["card"])
		stale := func(name, ground string) (colour, colour) {
			return fade(all[name]).over(all["ground"]), fade(all[ground]).over(all["ground"])
		}
		check := func(what string, a, b colour, least float64) {
			if got := contrast(a, b); got < least {
				t.Errorf("%s: %s is %.2f:1, want %.1f:1", scheme, what, got, least)
			}
		}
		for _, ground := range []string{"card", "selected", "ground", "banner"} {
			for _, name := range []string{"ink", "muted", "link"} {
				check(name+" on "+ground, all[name], all[ground], text)
			}
			check("focus on "+ground, all["focus"], all[ground], line)
		}
		for _, ground := range []string{"card", "selected"} {
			for _, name := range []string{"calm", "full", "shed", "bad"} {
				check(name+" on "+ground, all[name], all[ground], text)
			}
		}
		check("text of a button", all["on-accent"], all["accent"], text)
		for _, name := range []string{"control", "accent"} {
			check(name+" on a card", all[name], all["card"], line)
		}
		for i := range 8 {
			check(fmt.Sprintf("line %d on a card", i), all[fmt.Sprintf("c%d", i)], all["card"], line)
		}
		for _, name := range []string{"c0", "c1", "c2", "muted"} {
			check(name+" in the gap", all[name], gap, line)
		}
		for _, name := range []string{"ink", "muted"} {
			a, b := stale(name, "card")
			check("stale "+name, a, b, text)
		}
	}
}

// staleness is the opacity of what is not known to be so any more, as in the style sheet.
const staleness = 0.85

func fade(c colour) colour {
	c[3] = staleness
	return c
}

func TestStaleness(t *testing.T) {
	raw, err := page.ReadFile("page/page.css")
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("opacity: %v;", staleness); !strings.Contains(string(raw), ".lost main { filter: grayscale(1); "+want+" }") {
		t.Errorf("the style sheet has no %q for what is stale", want)
	}
	// The formula itself: black on white is 21, and #767676 is the lightest grey that may be text.
	if got := contrast(colour{0, 0, 0, 1}, colour{1, 1, 1, 1}); math.Abs(got-21) > 1e-9 {
		t.Errorf("black on white: %v", got)
	}
	if got := contrast(parse(t, "#767676"), parse(t, "#fff")); math.Abs(got-4.54) > 0.005 {
		t.Errorf("#767676 on white: %v, want 4.54", got)
	}
}
