// Package trace reads what others have recorded of clusters and jobs, and draws arrivals where nothing was recorded.
//
// Readers take an [io.Reader] and the name by which errors call it. Each of them returns everything or one error, a
// [FieldError] that names file, line and field.
package trace
