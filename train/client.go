package train

import (
	"context"
	"encoding/json"
	"time"

	"optimus/internal/rpc"
	"optimus/internal/rundir"
	"optimus/spec"
)

// Rescale asks a running job of the state folder root ("" for the default) for
// other counts, 0 keeping one, and waits for the first step under them. It works
// from any process of the machine. If ctx has a deadline the job answers before
// it, saying what is still awaited; a rescale that is under way goes on.
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
	bounded := func(n int) int32 { return int32(min(max(n, -1), spec.MaxMembers+1)) } // the job refuses what lies outside
	request := &rpc.RescaleRequest{Servers: bounded(servers), Workers: bounded(workers)}
	if at, ok := ctx.Deadline(); ok {
		left := time.Until(at)
		request.TimeoutMs = max(1, (left - min(left/10, time.Second)).Milliseconds())
	}
	reply, err := client.Rescale(ctx, request)
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(reply.ReportJson, &r)
}
