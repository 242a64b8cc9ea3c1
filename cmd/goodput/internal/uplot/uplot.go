// Package uplot is uPlot, which draws the charts of the HTML report and of the live page: the
// two files of its npm package, unchanged. README.md says which version, and how to update.
package uplot

import _ "embed" // the files are part of the program: both pages work offline

var (
	// JS is a script that defines uPlot in the global scope.
	//
	//go:embed uPlot.iife.min.js
	JS string
	// CSS is its style sheet.
	//
	//go:embed uPlot.min.css
	CSS string
)
