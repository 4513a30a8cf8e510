package plots

// Ticks are those of an axis.
var Ticks = ticks{}.Ticks
