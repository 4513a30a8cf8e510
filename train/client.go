package train

import (
	"context"
	"encoding/json"

	"optimus/internal/rpc"
	"optimus/internal/rundir"
	"optimus/spec"
)

// Rescale asks a running job of the state folder root ("" for the default) for
// other counts, 0 keeping one, and waits for the first step under them. It works
// from any process of the machine; `optimus rescale` does the same.
func Rescale(ctx context.Context, root, job string, servers, workers int) (r spec.RescaleReport, err error) {
	dir, err := rundir.Open(root, job)
	if err != nil {
		return r, err
	}
	socket, err := dir.Socket()
	if err != nil {
		return r, err
	}
	client, err := rpc.Dial(ctx, socket)
	if err != nil {
		return r, err
	}
	defer client.Close()
	reply, err := client.Rescale(ctx, &rpc.RescaleRequest{Servers: int32(servers), Workers: int32(workers)})
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(reply.ReportJson, &r)
}
