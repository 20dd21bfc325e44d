// The command `kubelet`: the port forwarding of a kubelet, for nodes whose pods are processes of this
// machine. The library of real kubelets (k8s.io/cri-streaming) is no dependency of an API server: this
// does what the WebSocket half of that library does.
package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"

	"k8s.io/streaming/pkg/httpstream/wsstream"
)

// portForwardProtocol has two channels for each port: one for data, one for the error.
const portForwardProtocol = "v4." + wsstream.ChannelWebSocketProtocol

// kubeletReady is the line on stdout; its names are part of the contract.
type kubeletReady struct {
	Port int `json:"port"`
}

func kubelet(args []string) error {
	var address string
	var exitWithStdin bool
	fs := flag.NewFlagSet("kubelet", flag.ContinueOnError)
	fs.StringVar(&address, "listen", "127.0.0.1:0", "address with the port; 0: a free one")
	fs.BoolVar(&exitWithStdin, "exit-with-stdin", false, "stop when stdin is closed")
	if err := fs.Parse(args); err != nil {
		return err
	}
	ctx, cancel := endContext(exitWithStdin)
	defer cancel()
	listener, err := net.Listen("tcp4", address)
	if err != nil {
		return err
	}
	line := kubeletReady{listener.Addr().(*net.TCPAddr).Port}
	if err := json.NewEncoder(os.Stdout).Encode(line); err != nil {
		return err
	}
	return serveKubelet(ctx, listener)
}

// serveKubelet returns when ctx ends. Its certificate is its own: an API server without
// --kubelet-certificate-authority does not verify it.
func serveKubelet(ctx context.Context, listener net.Listener) error {
	certificate, err := selfSigned("kubelet")
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/portForward/{namespace}/{pod}", forwardPorts)
	server := http.Server{
		Handler:   mux,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}},
		Protocols: new(http.Protocols),
	}
	server.Protocols.SetHTTP1(true) // HTTP/2 has no upgrades
	done := make(chan error, 1)
	go func() { done <- server.ServeTLS(listener, "", "") }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return server.Close()
	}
}

func selfSigned(name string) (tls.Certificate, error) {
	key, err := newKey()
	if err != nil {
		return tls.Certificate{}, err
	}
	leaf := template(name)
	leaf.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	der, err := x509.CreateCertificate(rand.Reader, leaf, leaf, &key.PublicKey, key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

// forwardPorts opens the ports of a request, and copies until one side of each has ended.
func forwardPorts(w http.ResponseWriter, req *http.Request) {
	ports, err := parsePorts(req.URL.Query()["port"])
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if !wsstream.IsWebSocketRequest(req) {
		http.Error(w, "only WebSocket is served here, not SPDY", http.StatusBadRequest)
		return
	}
	var channels []wsstream.ChannelType
	for range ports {
		channels = append(channels, wsstream.ReadWriteChannel, wsstream.WriteChannel)
	}
	conn := wsstream.NewConn(map[string]wsstream.ChannelProtocolConfig{
		portForwardProtocol: {Binary: true, Channels: channels},
	})
	_, streams, err := conn.Open(w, req)
	if err != nil { // the client has been told
		fmt.Fprintf(os.Stderr, "harness: kubelet: %s: %v\n", req.URL, err)
		return
	}
	defer conn.Close()
	pod := req.PathValue("namespace") + "/" + req.PathValue("pod")
	var pending sync.WaitGroup
	for i, port := range ports {
		pending.Go(func() { forwardPort(pod, port, streams[2*i], streams[2*i+1]) })
	}
	pending.Wait()
}

// parsePorts reads ports that may be separated by commas.
func parsePorts(texts []string) ([]uint16, error) {
	var ports []uint16
	for _, text := range strings.Split(strings.Join(texts, ","), ",") {
		port, err := strconv.ParseUint(text, 10, 16)
		if err != nil || port == 0 {
			return nil, fmt.Errorf("query parameter \"port\": %q is no port", text)
		}
		ports = append(ports, uint16(port))
	}
	return ports, nil
}

// forwardPort says on both channels which port they are for, and copies. A failure goes to the channel
// of errors, in the words of a kubelet.
func forwardPort(pod string, port uint16, data io.ReadWriteCloser, failure io.WriteCloser) {
	defer data.Close()
	defer failure.Close()
	number := binary.LittleEndian.AppendUint16(nil, port)
	for _, channel := range []io.Writer{data, failure} {
		if _, err := channel.Write(number); err != nil {
			return // the client is gone
		}
	}
	if err := copyBothWays(port, data); err != nil {
		fmt.Fprintf(failure, "error forwarding port %d to pod %s: %v", port, pod, err)
	}
}

// copyBothWays returns when one side has ended. A pod has the network of this machine.
func copyBothWays(port uint16, data io.ReadWriter) error {
	target, err := net.Dial("tcp4", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return err
	}
	defer target.Close()
	done := make(chan error, 2)
	pass := func(to io.Writer, from io.Reader) {
		_, err := io.Copy(to, from)
		done <- err
	}
	go pass(target, data)
	go pass(data, target)
	return <-done
}
