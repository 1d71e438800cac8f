# Memory that does not suffice: before anything is allocated, one sentence says what is missing and what to change.
unset UTTER_DEVICE
export UTTER_MODEL=$MODELS/tiny06-custom_voice
export SAY='utter say --max-frames 1 --seed 1 -o x.wav'
utter quantize -q --weights q8 -o packed
run 'HOST_CARD=3060 HOST_FAULT=memory=2000000000 $SAY -m $MODELS/hollow06 --device cuda Hi.'
run 'HOST_CARD=3060 HOST_FAULT=memory=3000000000 $SAY -m $MODELS/hollow06 --device cuda --lanes 200 Hi.'
run 'HOST_FAULT=memory=20000000 $SAY --weights q8 --device cuda Hi.'
run 'HOST_FAULT=memory=60000000 $SAY --weights q8 --device cuda --lanes 200 Hi.'
run 'HOST_FAULT=memory=20000000 $SAY --weights q4 --device cuda Hi.'
run 'HOST_FAULT=memory=60000000 $SAY --weights q4 --device cuda --lanes 200 Hi.'
run 'HOST_FAULT=memory=20000000 $SAY -m packed --device cuda Hi.'
# What the plan lets through does open: the pages of its cache leave what the driver's own pages take.
run 'HOST_FAULT=memory=30000000 $SAY --device cuda Hi.'
run 'HOST_FAULT=memory=34000000 $SAY -q --device cuda Hi.'
# `auto` takes the GPU with packed weights too; where they do not fit, it says so and the CPU speaks.
run 'HOST_FAULT=memory=20000000 $SAY --weights q4 Hi.'
run 'utter info -m packed | grep -E "^(device|kernels)"'
