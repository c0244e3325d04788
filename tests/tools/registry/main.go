// A registry in memory with the referrers API, which go-containerregistry's own command leaves out. It prints its address.
package main

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
)

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(listener.Addr())
	handler := registry.New(registry.WithReferrersSupport(true), registry.Logger(log.New(io.Discard, "", 0)))
	server := &http.Server{ReadHeaderTimeout: 5 * time.Second, Handler: handler}
	log.Fatal(server.Serve(listener))
}
