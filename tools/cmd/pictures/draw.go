package main

import (
	"bytes"
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// The colours of Okabe and Ito, which people who are colour-blind tell apart; each has a dash
// of its own too.
var (
	orange    = color.RGBA{0xb3, 0x5a, 0x00, 0xff} // darker than theirs: 4.5 to 1 on white
	sky       = color.RGBA{0x00, 0x72, 0xb2, 0xff}
	green     = color.RGBA{0x00, 0x7a, 0x5a, 0xff}
	vermilion = color.RGBA{0xc0, 0x3a, 0x00, 0xff}
	grey      = color.RGBA{0x55, 0x55, 0x55, 0xff}
	gap       = color.RGBA{0xf2, 0xd9, 0xc7, 0xff} // between what is offered and what is answered in time
)

const (
	panelWidth  = 13 * vg.Centimeter // two beside one another fill the column of a page
	panelHeight = 5.5 * vg.Centimeter
	dpi         = 144 // sharp on screens of two pixels a point
)

// A line is one of a chart.
type line struct {
	name   string
	ys     []float64
	colour color.Color
	dashes []vg.Length
	width  vg.Length
}

var (
	solid  []vg.Length
	dashed = []vg.Length{vg.Points(6), vg.Points(3)}
	dotted = []vg.Length{vg.Points(1.5), vg.Points(2.5)}
)

// paint draws a column of panels for each policy, as PNG.
func paint(r *report) ([]byte, error) {
	var columns [][]*plot.Plot
	for _, p := range r.Policies {
		title := ""
		if len(r.Policies) > 1 {
			title = p.Name
		}
		columns = append(columns, panels(&p, title))
	}
	sameScale(columns) // of the first row: a queue without a bound would hide the other
	rows := len(columns[0])
	canvas := vgimg.PngCanvas{Canvas: vgimg.NewWith(
		vgimg.UseWH(panelWidth*vg.Length(len(columns)), panelHeight*vg.Length(rows)), vgimg.UseDPI(dpi))}
	tiles := draw.Tiles{Rows: rows, Cols: len(columns), PadX: 4 * vg.Millimeter, PadY: 2 * vg.Millimeter, PadTop: vg.Millimeter, PadRight: 3 * vg.Millimeter}
	grid := make([][]*plot.Plot, rows)
	for i := range grid {
		for _, c := range columns {
			grid[i] = append(grid[i], c[i])
		}
	}
	for i, row := range plot.Align(grid, tiles, draw.New(canvas)) {
		for j, c := range row {
			grid[i][j].Draw(c)
		}
	}
	var b bytes.Buffer
	_, err := canvas.WriteTo(&b)
	return b.Bytes(), err
}
