// A voice from a recording: taken here by the microphone, or a file.
import { Take } from "./take.js";
import { makeVoice } from "./server.js";

const $ = id => document.getElementById(id);

function tell(text, bad) {
    $("voice-state").textContent = text;
    $("voice-state").classList.toggle("bad", Boolean(bad));
}

// Browsers record in formats of their own; what is sent is WAV.
async function toWav(blob) {
    const decoder = new AudioContext(), sound = await decoder.decodeAudioData(await blob.arrayBuffer());
    decoder.close();
    const take = new Take({});
    take.rate = sound.sampleRate;
    take.add(Int16Array.from(sound.getChannelData(0), x => Math.max(-32768, Math.min(32767, x * 32768))));
    return take.wav();
}

// `made` is called with the name of a new voice.
export function offerVoices(made) {
    let recorder = null, recorded = null, began = 0, timer = 0;

    async function record() {
        if (recorder) {
            recorder.stop();
            return;
        }
        try {
            const stream = await navigator.mediaDevices.getUserMedia({ audio: true }), pieces = [];
            recorder = new MediaRecorder(stream);
            recorder.ondataavailable = e => pieces.push(e.data);
            recorder.onstop = () => {
                stream.getTracks().forEach(t => t.stop());
                clearInterval(timer);
                recorded = new Blob(pieces);
                recorder = null;
                $("file").value = "";
                $("record").textContent = "Record again";
                $("record").setAttribute("aria-pressed", "false");
                tell(`Recorded ${((performance.now() - began) / 1000).toFixed(1)} s.`);
            };
            recorder.start();
            began = performance.now();
            timer = setInterval(() => {
                const seconds = (performance.now() - began) / 1000;
                $("record").textContent = `Stop recording (${seconds.toFixed(0)} s)`;
                if (seconds > 30) recorder.stop();
            }, 250);
            $("record").textContent = "Stop recording";
            $("record").setAttribute("aria-pressed", "true");
            tell("Recording ...");
        } catch (e) {
            tell(e.name === "NotAllowedError" ? "The browser does not let this page use the microphone."
                : "There is no microphone that this page can use.", true);
        }
    }

    async function upload(replace) {
        const sound = recorded || $("file").files[0], name = $("name").value.trim();
        $("replace").hidden = true;
        if (!sound) return tell("Record something, or choose a sound file.", true);
        if (!name) {
            $("name").focus();
            return tell("Give the voice a name.", true);
        }
        const form = new FormData();
        form.append("name", name);
        if ($("transcript").value.trim()) form.append("ref_text", $("transcript").value);
        if (replace) form.append("overwrite", "true");
        tell("Making the voice ...");
        try {
            form.append("audio_sample", recorded ? await toWav(recorded) : sound, "recording.wav");
            const voice = await makeVoice(form);
            await made(voice.name);
            tell(`The voice ${voice.name} is there, and chosen.`);
        } catch (e) {
            tell(e.message, true);
            $("replace").hidden = e.status !== 409;
        }
    }

    $("record").addEventListener("click", record);
    $("file").addEventListener("change", () => { recorded = null; });
    $("upload").addEventListener("click", () => upload(false));
    $("replace").addEventListener("click", () => upload(true));
}
