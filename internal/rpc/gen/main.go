// Command gen writes control.pb.go and control_grpc.pb.go from control.proto,
// with Go programs alone: protocompile reads the file, and the two generators
// pinned in go.mod as tools write the code. No protoc is needed.
//
//	go generate ./internal/rpc
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

// registered is the file's name in the process-wide registry of protobuf files,
// where a bare control.proto could meet another one.
const registered = "optimus/control/v1/control.proto"

func main() {
	source := flag.String("source", "control.proto", "the file to read")
	out := flag.String("out", ".", "the folder to write to")
	flag.Parse()
	if err := run(context.Background(), *source, *out); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, source, out string) error {
	request, err := compile(ctx, source)
	if err != nil {
		return fmt.Errorf("compile %s: %w", source, err)
	}
	for _, tool := range []string{"protoc-gen-go", "protoc-gen-go-grpc"} {
		files, err := generate(ctx, tool, request)
		if err != nil {
			return fmt.Errorf("run go tool %s: %w", tool, err)
		}
		for _, f := range files {
			// The name holds the import path as folders; the package is out.
			name := filepath.Join(out, path.Base(f.GetName()))
			if err := os.WriteFile(name, []byte(f.GetContent()), 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// compile returns the request that protoc would hand to its plugins, encoded.
func compile(ctx context.Context, source string) ([]byte, error) {
	compiler := protocompile.Compiler{
		Resolver: &protocompile.SourceResolver{Accessor: func(name string) (io.ReadCloser, error) {
			if name != registered {
				return nil, os.ErrNotExist
			}
			return os.Open(source)
		}},
		SourceInfoMode: protocompile.SourceInfoStandard, // comments become Go comments
	}
	files, err := compiler.Compile(ctx, registered)
	if err != nil {
		return nil, err
	}
	return proto.Marshal(&pluginpb.CodeGeneratorRequest{
		FileToGenerate: []string{registered},
		ProtoFile:      []*descriptorpb.FileDescriptorProto{protoutil.ProtoFromFileDescriptor(files[0])},
	})
}

// generate runs one of the module's tools on a request and returns its files.
func generate(ctx context.Context, tool string, request []byte) ([]*pluginpb.CodeGeneratorResponse_File, error) {
	cmd := exec.CommandContext(ctx, "go", "tool", tool)
	cmd.Stdin = bytes.NewReader(request)
	cmd.Stderr = os.Stderr
	answer, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	var response pluginpb.CodeGeneratorResponse
	if err := proto.Unmarshal(answer, &response); err != nil {
		return nil, err
	}
	if response.Error != nil {
		return nil, errors.New(response.GetError())
	}
	return response.File, nil
}
