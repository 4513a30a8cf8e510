package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"optimus/internal/failure"
	"optimus/models"
)

func modelsCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "models",
		Short: "List the workloads that can be trained",
		Long:  `List the workloads that can be trained, with the size of each model for its whole original data set.`,
		RunE: func(*cobra.Command, []string) error {
			list, err := models.List()
			if err != nil {
				return failure.E("models", "", "", err, "")
			}
			t := table{columns: []string{"NAME", "PARAMETERS", "BLOCKS", "TYPE", "DATASET", "EXAMPLES", "+APPLICATION"}}
			for _, m := range list {
				t.rows = append(t.rows, []string{
					m.Name, humanCount(m.Parameters), fmt.Sprint(m.Blocks), m.Type, m.Dataset, fmt.Sprint(m.Examples), m.Application,
				})
			}
			return a.print(list, t)
		},
	}
}
