package plots

import (
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// errorPoints are values with errors of the same size above and below, one a group.
type errorPoints struct{ values, errors []float64 }

func (e errorPoints) Len() int                         { return len(e.values) }
func (e errorPoints) XY(i int) (x, y float64)          { return float64(i), e.values[i] }
func (e errorPoints) YError(i int) (low, high float64) { return e.errors[i], e.errors[i] }

// shifted draws error bars to the right of where they belong.
type shifted struct {
	*plotter.YErrorBars
	by vg.Length
}

// Plot implements plot.Plotter.
func (s shifted) Plot(c draw.Canvas, p *plot.Plot) {
	c.Push()
	c.Translate(vg.Point{X: s.by})
	s.YErrorBars.Plot(c, p)
	c.Pop()
}
