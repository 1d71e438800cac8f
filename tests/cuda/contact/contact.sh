# First contact: each reason why a GPU cannot be used is one sentence, with the version that is needed and what to do.
unset UTTER_DEVICE
export UTTER_MODEL=$MODELS/tiny06-custom_voice
export SAY='utter say --max-frames 1 --seed 1 -o x.wav'
system() { # VERSION of the driver in the kernel; the node of the driver, a link to which
    rm -rf posed
    mkdir -p posed/sys/module/nvidia posed/dev
    [ -z "$1" ] || echo "$1" >posed/sys/module/nvidia/version
    [ -z "${2-}" ] || ln -s "$2" posed/dev/nvidiactl
}
# Asked for, the GPU is an error; `auto` tells why the CPU speaks, and speaks.
run 'HOST_FAULT=driver=0 $SAY --device cuda Hi.'
run 'HOST_FAULT=driver=0 $SAY Hi.'
run 'HOST_FAULT=driver=0 $SAY --device cpu Hi.'
system 535.161.08
run 'HOST_FAULT=driver=12020 $SAY --device cuda Hi.'
run 'HOST_FAULT=driver=12020 $SAY Hi.'
# A container without the toolkit: no library, no node, no right.
run 'HOST_FAULT=driver=0 $SAY Hi.'
run 'HOST_CARD=none $SAY Hi.'
system 580.65.06 /proc/sys/kernel/ostype
run 'HOST_CARD=none $SAY Hi.'
run 'HOST_FAULT=cudaGetDeviceCount:1:cudaErrorOperatingSystem $SAY --device cuda Hi.'
# CUDA_VISIBLE_DEVICES= and MIG without an instance look alike.
system 580.65.06 /dev/null
run 'HOST_CARD=none $SAY Hi.'
run 'HOST_CARD=none utter serve --device cuda:all'
run 'HOST_FAULT=mode=3 $SAY Hi.'
run 'HOST_FAULT=mode=3 $SAY --device cuda:0 Hi.'
run 'HOST_FAULT=mode=2 $SAY --device cuda Hi.'
run 'HOST_CARD=mig HOST_FAULT=cudaSetDevice:1:cudaErrorDevicesUnavailable $SAY --device cuda Hi.'
run '$SAY --device cuda:1 Hi.'
run 'HOST_CARD=t4 $SAY --device cuda Hi.'
run 'HOST_CARD=5090 HOST_FAULT=cudaFuncGetAttributes:1:cudaErrorNoKernelImageForDevice $SAY --device cuda Hi.'
run 'HOST_CARD=5090 HOST_FAULT=cudaFuncGetAttributes:1:cudaErrorUnsupportedPtxVersion $SAY --device cuda Hi.'
run 'HOST_FAULT=cudaGetDeviceCount:1+:cudaErrorSystemDriverMismatch $SAY Hi.'
run 'HOST_FAULT=cudaGetDeviceCount:1+:cudaErrorSystemNotReady $SAY Hi.'
run 'HOST_FAULT=cudaGetDeviceCount:1+:cudaErrorCompatNotSupportedOnDevice $SAY Hi.'
run 'HOST_FAULT=cudaGetDeviceCount:1+:cudaErrorUnknown $SAY Hi.'
# The server: in its log, or the reason why it does not begin.
serve() { # OPTION ...
    : >log
    utter serve --port 0 --idle 0 "$@" 2>log >/dev/null &
    for ((i = 0; i < 600; i++)); do grep -q worker_ready log && break; sleep 0.1; done
    kill -TERM $!
    wait $!
    grep -o '"note": *"[^"]*"' log || echo 'no note'
}
export -f serve
system 535.161.08
run 'HOST_FAULT=driver=12020 serve'
run 'HOST_FAULT=driver=12020 serve --device cpu'
run 'HOST_FAULT=driver=12020 utter serve --port 0 --device cuda'
