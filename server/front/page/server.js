// The server as the page sees it: what its model can do, speech as it is made, files, voices; and its refusals in the
// words of people.

const labels = { input: "The text", voice: "The voice", speaker: "The voice", language: "The language", speed: "The speed",
    seed: "The seed", instructions: "The description", name: "The name", audio_sample: "The recording",
    ref_text: "What the recording says" };

let key = "";
try {
    key = sessionStorage.getItem("key") || "";
} catch { /* a browser that keeps nothing */ }

export function useKey(typed) {
    key = typed;
    try {
        sessionStorage.setItem("key", typed);
    } catch { /* it is kept while the page is there */ }
}

export const keyInUse = () => key;

// Why something was not done, for people; `status` of HTTP, 0 where nothing came.
export class Trouble extends Error {
    constructor(text, status, param) {
        super(text);
        this.status = status;
        this.param = param;
    }
}

function inWords(status, error, wait) {
    const again = wait ? ` Try again in ${wait} s.` : " Try again in a moment.";
    const message = error.message || "";
    if (status === 401) return "This server asks for an API key. Enter it above.";
    if (status === 403) return "The server takes no requests from this address of the page.";
    if (status === 409) return "There is a voice of this name already.";
    if (status === 413) return "This is longer than the server takes.";
    if (status === 429) return "The limit of this key is used up." + again;
    if (status === 503) return (/opened/.test(message) ? "The model is being opened." : "The server has no place free just now.") + again;
    if (status >= 500) return "The model could not do this: " + (message || "status " + status);
    const named = message.replace(`"${error.param}"`, labels[error.param] || "This");
    return named ? named[0].toUpperCase() + named.slice(1) : "The server refused this (status " + status + ").";
}

async function refusal(answer) {
    let error = {};
    try {
        error = (await answer.json()).error || {};
    } catch { /* no JSON: the status says it */ }
    return new Trouble(inWords(answer.status, error, answer.headers.get("retry-after")), answer.status, error.param);
}

async function ask(path, options = {}) {
    const headers = { ...(key ? { Authorization: "Bearer " + key } : {}), ...options.headers };
    let answer;
    try {
        answer = await fetch(path, { ...options, headers });
    } catch (e) {
        throw e.name === "AbortError" ? e : new Trouble("The server does not answer. Is it still running?", 0);
    }
    if (!answer.ok) throw await refusal(answer);
    return answer;
}

const asJson = (body, signal) => ({ method: "POST", signal, body: JSON.stringify(body), headers: { "Content-Type": "application/json" } });

// {id, model, voices}: model is null while it is being opened.
export async function describe() {
    const [models, voices] = await Promise.all(["v1/models", "v1/audio/voices"].map(async path => (await ask(path)).json()));
    return { id: models.data[0].id, model: models.data[0].utter || null, voices: voices.voices.filter(v => v.kind !== "alias") };
}

// Events of a speech: first {type: "begins", rate}, then those of the interface.
export async function* speech(fields, signal) {
    const answer = await ask("v1/audio/speech", asJson({ ...fields, response_format: "pcm", stream_format: "sse", word_timestamps: true }, signal));
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    yield { type: "begins", rate: Number(answer.headers.get("x-sample-rate")) || 24000 };
    let text = "", whole = false;
    try {
        for (let piece; !(piece = await reader.read()).done;) {
            const events = (text + piece.value).split("\n\n");
            text = events.pop();
            for (const event of events) {
                const told = JSON.parse(event.slice(event.indexOf("data: ") + 6));
                if (told.type === "speech.audio.error") throw new Trouble(inWords(500, told.error || {}), 500);
                whole = whole || told.type === "speech.audio.done";
                yield told;
            }
        }
    } catch (e) {
        throw e.name === "AbortError" || e instanceof Trouble ? e : new Trouble("The connection broke before the end.", 0);
    }
    if (!whole) throw new Trouble("The connection broke before the end.", 0);
}

// The same speech once more, as a file of this format: the same fields and seed give the same samples.
export async function file(fields, format, signal) {
    return (await ask("v1/audio/speech", asJson({ ...fields, response_format: format, stream: false }, signal))).blob();
}

export async function makeVoice(form) {
    return (await ask("v1/audio/voices", { method: "POST", body: form })).json();
}
