package main

import (
	"fmt"
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// panels are those of one policy, from top to bottom: what comes and what becomes of it, how
// many wait, the limit if it moves; or, of several tenants, what each has of what it asks.
func panels(p *policy, title string) []*plot.Plot {
	if len(p.Classes) > 1 {
		return []*plot.Plot{shares(p, title)}
	}
	s := &p.Series
	width := s.End[1] - s.End[0] // of a bin; all are equal
	per := func(counts []float64) []float64 {
		out := make([]float64, len(counts))
		for i, n := range counts {
			out[i] = n / width
		}
		return out
	}
	top := []line{
		{"offered", per(s.Arrivals), orange, dashed, vg.Points(1.6)},
		{"answered in time (goodput)", per(s.InTime), sky, solid, vg.Points(2)},
		{"refused", per(s.Refused), grey, dotted, vg.Points(1.6)},
	}
	if !slices.Equal(s.Attempts, s.Arrivals) {
		top = append(top, line{"sent, with retries", per(s.Attempts), vermilion, dotted, vg.Points(1.6)})
	}
	rates := chart(title, "per second", s.End, top, top[0].ys, top[1].ys)
	queue := []line{{"waiting", s.Waiting, sky, solid, vg.Points(2)}}
	if slices.Max(s.Derived) > 0 {
		queue = append(queue,
			line{"may wait now (depth in force)", s.Depth, orange, dashed, vg.Points(1.6)},
			line{"may wait within the objective (derived depth)", s.Derived, grey, dotted, vg.Points(1.6)})
	}
	all := []*plot.Plot{rates, chart("", "requests", s.End, queue, nil, nil)}
	if slices.Min(s.Limit) != slices.Max(s.Limit) {
		all = append(all, chart("", "requests", s.End, []line{{"limit", s.Limit, green, solid, vg.Points(2)}}, nil, nil))
	}
	all[len(all)-1].X.Label.Text = "seconds"
	return all
}

// chart draws lines over time, and the gap between two of them if there are.
func chart(title, unit string, xs []float64, lines []line, above, below []float64) *plot.Plot {
	p := plot.New()
	p.Title.Text = title
	p.Y.Label.Text = unit
	p.Y.Min, p.X.Min, p.X.Max = 0, 0, xs[len(xs)-1]
	p.Y.Tick.Marker = whole{}
	p.Legend.Top, p.Legend.Left = true, false
	p.Legend.YOffs = -vg.Points(2)
	p.Legend.Padding = vg.Points(1)
	p.Legend.ThumbnailWidth = vg.Points(26)
	p.Add(plotter.NewGrid())
	if above != nil {
		p.Add(between(xs, above, below))
	}
	for _, l := range lines {
		pts := make(plotter.XYs, len(xs))
		for i := range xs {
			pts[i] = plotter.XY{X: xs[i], Y: l.ys[i]}
		}
		drawn, err := plotter.NewLine(pts)
		if err != nil {
			panic(err) // a NaN in a series of counts
		}
		drawn.LineStyle = draw.LineStyle{Color: l.colour, Width: l.width, Dashes: l.dashes}
		p.Add(drawn)
		p.Legend.Add(l.name, drawn)
		p.Y.Max = math.Max(p.Y.Max, 1.6*slices.Max(l.ys)) // more than half on top: room for a legend of four
	}
	p.Y.Max = math.Max(p.Y.Max, 1)
	return p
}

// between is the area between two series.
func between(xs, above, below []float64) *plotter.Polygon {
	var ring plotter.XYs
	for i, x := range xs {
		ring = append(ring, plotter.XY{X: x, Y: above[i]})
	}
	for i := len(xs) - 1; i >= 0; i-- {
		ring = append(ring, plotter.XY{X: xs[i], Y: math.Min(below[i], above[i])})
	}
	area, err := plotter.NewPolygon(ring)
	if err != nil {
		panic(err)
	}
	area.Color, area.LineStyle.Width = gap, 0
	return area
}

// shares are bars: of what each class asks, the part that is answered in time.
func shares(p *policy, title string) *plot.Plot {
	b := plot.New()
	b.Title.Text = title
	b.Y.Label.Text = "in time, % of asked"
	var names []string
	for i, c := range p.Classes {
		percent := 100 * c.Figures.Ratio.Mean
		bar, err := plotter.NewBarChart(plotter.Values{percent}, vg.Points(60))
		if err != nil {
			panic(err)
		}
		bar.XMin, bar.Color, bar.LineStyle.Width = float64(i), []color.Color{sky, orange}[i%2], 0
		label, err := plotter.NewLabels(plotter.XYLabels{XYs: plotter.XYs{{X: float64(i), Y: percent}}, Labels: []string{fmt.Sprintf("%.0f %%", percent)}})
		if err != nil {
			panic(err)
		}
		label.Offset = vg.Point{X: -vg.Points(12), Y: vg.Points(3)}
		b.Add(bar, label)
		names = append(names, c.Name)
	}
	b.NominalX(names...)
	b.X.Min, b.X.Max, b.Y.Min, b.Y.Max = -0.6, float64(len(names))-0.4, 0, 115 // room for what is written on a bar
	return b
}

// sameScale gives the panels of the first row one scale, so that columns can be compared.
func sameScale(columns [][]*plot.Plot) {
	top := 0.0
	for _, c := range columns {
		top = math.Max(top, c[0].Y.Max)
	}
	for _, c := range columns {
		c[0].Y.Max = top
	}
}

// whole are ticks with the number written out: 12000 and not 1.2e+04.
type whole struct{}

func (whole) Ticks(low, high float64) []plot.Tick {
	ticks := plot.DefaultTicks{}.Ticks(low, high)
	for i := range ticks {
		if ticks[i].Label != "" {
			ticks[i].Label = fmt.Sprintf("%.0f", ticks[i].Value)
		}
	}
	return ticks
}
