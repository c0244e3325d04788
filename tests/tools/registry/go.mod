module cluster-operator/tests/tools/registry

go 1.26.5

require github.com/google/go-containerregistry v0.21.7
