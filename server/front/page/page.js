// The page at /: what is typed, chosen, made, heard and kept.
import { describe, file, keyInUse, speech, useKey } from "./server.js";
import { forget, keep, keptTakes, MOST_TAKES, Take } from "./take.js";
import { Player } from "./player.js";
import { Stage } from "./stage.js";
import { offerVoices } from "./voice.js";

const $ = id => document.getElementById(id);
const REMEMBERED = ["text", "voice", "language", "speed", "seed", "instructions", "format"];
const MOST_CHARS = 100000;

let model = null, voices = [], takes = [], making = null;  // making: {control} while sound comes
const player = new Player(showState), stage = new Stage(player, playFrom);

/* ---- State that is true ---- */

function tell(text, bad) {
    if ($("state").textContent !== text) $("state").textContent = text;
    $("state").classList.toggle("bad", Boolean(bad));
}

// Not "disabled": a button that is loses the keyboard's place.
function able(id, yes) {
    $(id).setAttribute("aria-disabled", String(!yes));
}

const can = id => $(id).getAttribute("aria-disabled") !== "true";

function showState() {
    const playing = player.state === "playing";
    if (playing) tell(making ? "Speaking" : "Playing");
    else if (player.state === "ended") tell("Ended");
    able("stop", playing || making);
    able("play", player.take?.n > 0 || playing);
    $("play").textContent = playing ? "Pause" : "Play";
    for (const item of $("takes").children) {
        const mine = item.take === player.take;
        item.setAttribute("aria-current", String(mine));
        item.play.textContent = mine && playing ? "Pause" : "Play";
        item.play.setAttribute("aria-label", item.play.textContent + ": " + item.title);
    }
    if (playing || making) requestAnimationFrame(frame);
    stage.draw();
}

let asked = false;
function frame() {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
        asked = false;
        stage.draw();
        if (player.state === "playing" || making) frame();
    });
}

function look(take) {
    if (player.take !== take) {
        player.load(take);
        stage.load(take);
        $("figures").textContent = take.figures || "\u00a0";
    }
}

function playFrom(second) {
    player.play(second);
    showState();
}

function playOrPause(take) {
    if (player.state === "playing" && player.take === take) {
        player.pause();
        tell("Paused");
    } else {
        look(take);
        playFrom(player.state === "ended" ? 0 : player.cursor);
    }
}

/* ---- Takes ---- */

function button(text, label, action) {
    const b = document.createElement("button");
    b.type = "button";
    b.textContent = text;
    b.setAttribute("aria-label", `${text}: ${label}`);
    b.addEventListener("click", action);
    return b;
}

function about(take) {
    const { voice, seed, speed } = take.fields;
    return [voice || "designed voice", `seed ${seed}`, speed !== 1 ? `${speed} ×` : "",
        take.made ? `${take.seconds.toFixed(1)} s` : "being made",
        { stopped: "stopped", broken: "not whole", length: "cut", incomplete: "words are missing" }[take.finish] || ""]
        .filter(Boolean).join(" · ");
}

function addItem(take, atEnd) {
    const item = document.createElement("li"), words = document.createElement("div"), line = document.createElement("div");
    const does = document.createElement("div"), title = take.fields.input.trim().slice(0, 60);
    Object.assign(item, { take, line, title });
    words.className = "words";
    words.textContent = take.fields.input;
    line.className = "about";
    line.textContent = about(take);
    does.className = "does";
    item.play = button("Play", title, () => playOrPause(take));
    does.append(item.play, button("Download", title, () => download(take)), button("Remove", title, () => remove(take)));
    item.append(words, line, does);
    $("takes")[atEnd ? "append" : "prepend"](item);
    $("kept").hidden = false;
}

const itemOf = take => [...$("takes").children].find(item => item.take === take);

function addTake(fields) {
    const take = new Take(fields);
    takes.unshift(take);
    addItem(take);
    while (takes.length > MOST_TAKES) remove(takes.at(-1), true);
    return take;
}

async function remove(take, silently) {
    const item = itemOf(take), next = item?.nextElementSibling || item?.previousElementSibling;
    if (making?.take === take) making.control.abort();
    if (player.take === take) {
        player.load(null);
        stage.load(null);
    }
    takes = takes.filter(t => t !== take);
    item?.remove();
    $("kept").hidden = takes.length === 0;
    if (!silently) (next?.play || $("text")).focus();
    showState();
    await forget(take).catch(() => {});
}

async function download(take) {
    const format = $("format").value, control = new AbortController();
    try {
        if (format !== "wav") tell(`Making the ${format} file ...`);
        const blob = format === "wav" ? take.wav() : await file(take.fields, format, control.signal);
        const link = document.createElement("a"), url = URL.createObjectURL(blob);
        const name = take.fields.input.toLowerCase().match(/[\p{L}\p{N}]+/gu)?.slice(0, 6).join("-") || "speech";
        link.href = url;
        link.download = `${name}.${format}`;
        link.click();
        setTimeout(() => URL.revokeObjectURL(url), 60000);
        tell(`Downloaded ${link.download}`);
    } catch (e) {
        tell(e.message, true);
    }
}

/* ---- Speech ---- */

function samplesOf(base64) {
    const bytes = Uint8Array.from(atob(base64), c => c.charCodeAt(0)), view = new DataView(bytes.buffer);
    return Int16Array.from({ length: bytes.length >> 1 }, (_, i) => view.getInt16(2 * i, true));
}

function showFigures(take, began, first, ended) {
    const made = (ended - began) / 1000;
    take.figures = `First sound after ${(first - began).toFixed(0)} ms · made in ${made.toFixed(1)} s, ` +
        `${(take.seconds / made).toFixed(1)} times as fast as it is heard`;
    if (player.take === take) $("figures").textContent = take.figures;
}

// Fills the take as its sound comes. False: it was not made whole.
async function make(take, control) {
    const began = performance.now();
    let first = 0;
    making = { control, take };
    showState();
    try {
        for await (const told of speech(take.fields, control.signal)) {
            if (told.type === "begins") take.rate = told.rate;
            if (told.type === "speech.audio.words") take.learn(told.words);
            if (told.type === "speech.audio.done") take.finish = told.finish_reason === "stop" ? "" : told.finish_reason;
            if (told.type === "speech.audio.delta") {
                first = first || performance.now();
                take.add(samplesOf(told.audio));
            }
            if (player.take === take) player.pump();
        }
        showFigures(take, began, first, performance.now());
        return true;
    } catch (e) {
        take.finish = e.name === "AbortError" ? "stopped" : "broken";
        throw e;
    } finally {
        if (making?.take === take) making = null;
        take.made = true;
        const item = itemOf(take);
        if (take.n === 0) remove(take, true);
        else if (item) {
            item.line.textContent = about(take);
            keep(take, takes).then(kept => kept || tell("This take is too long to be kept over a reload: download it."),
                () => {});
        }
        showState();
    }
}

// Why nothing can be said yet: the place to go to, and what to do there.
function missing() {
    if (!$("text").value.trim()) return ["text", "Write something first."];
    if ([...$("text").value].length > MOST_CHARS) return ["text", "The text is too long: at most 100,000 characters."];
    if (model?.kind === "base" && !voices.length) return ["name", "This model speaks with voices from recordings: make one below."];
    if (model?.kind === "voice_design" && !$("instructions").value.trim()) return ["instructions", "Describe the voice first."];
    if (!$("seed").checkValidity()) return ["seed", "The seed is a whole number, 0 or more."];
    return null;
}

function fieldsOf(seed) {
    const design = model?.kind === "voice_design";
    return { input: $("text").value, voice: design ? undefined : $("voice").value || undefined, language: $("language").value || "auto",
        seed, speed: Number($("speed").value), instructions: model?.takes_instructions && $("instructions").value || undefined };
}

// `many` takes with seeds in a row; one alone is heard while it is made.
async function start(many) {
    const lack = missing(), control = new AbortController();
    if (lack) {
        $(lack[0]).focus();
        return tell(lack[1], true);
    }
    stop();
    const seed = Number($("seed").value), made = [];
    for (let i = many - 1; i >= 0; i--) made.unshift(addTake(fieldsOf(seed + i)));
    look(made[0]);
    try {
        if (many === 1) playFrom(0);
        for (const [i, take] of made.entries()) {
            if (many > 1) tell(`Making take ${i + 1} of ${many} ...`);
            await make(take, control);
        }
        if (many > 1) tell("Three takes are there to compare.");
    } catch (e) {
        for (const take of made) if (!take.n) remove(take, true);
        if (player.take === made[0] && !made[0].n) player.load(null);
        if (e.name !== "AbortError") tell(e.message, true);
        if (e.status === 401) askForKey();
    }
}

function stop() {
    const was = making || player.state === "playing";
    making?.control.abort();
    player.pause();
    if (was) tell("Stopped");
}

/* ---- What the model can do ---- */

function fill(select, rows, wanted) {
    select.replaceChildren(...rows.map(([value, text]) => new Option(text, value)));
    if (rows.some(row => row[0] === wanted)) select.value = wanted;
}

function askForKey() {
    $("key-cell").hidden = false;
    $("key").focus();
}

const capital = word => word[0].toUpperCase() + word.slice(1);

async function learn(wanted) {
    const told = await describe(), before = wanted || $("voice").value || remembered("voice");
    ({ model, voices } = told);
    $("model").textContent = model ? `${told.id} · ${model.device}` : `${told.id} · being opened`;
    fill($("voice"), voices.length ? voices.map(v => [v.name, v.kind === "uploaded" ? `${v.name} (from a recording)` : v.name])
        : [["", "no voice yet"]], before);
    fill($("language"), [["auto", "Automatic"], ...(model?.languages || []).filter(l => l !== "auto").map(l => [l, capital(l)])],
        $("language").value || remembered("language"));
    const design = model?.kind === "voice_design";
    $("voice-cell").hidden = design;
    $("instructions-cell").hidden = !model?.takes_instructions && !design;
    $("instructions-label").textContent = design ? "Describe the voice" : "How to speak (optional)";
    $("cloning").hidden = model?.kind !== "base";
    if (!model) setTimeout(() => learn().catch(tellTrouble), 1000);
}

function tellTrouble(e) {
    tell(e.message, true);
    if (e.status === 401) askForKey();
}

/* ---- What was typed, over a reload ---- */

function remembered(id) {
    try {
        return localStorage.getItem("utter." + id);
    } catch {
        return null;
    }
}

function remember() {
    try {
        for (const id of REMEMBERED) localStorage.setItem("utter." + id, $(id).value);
    } catch { /* a browser that keeps nothing */ }
}

function count() {
    const n = [...$("text").value].length;
    $("counter").textContent = `${n.toLocaleString("en")} of ${MOST_CHARS.toLocaleString("en")}`;
    $("counter").classList.toggle("bad", n > MOST_CHARS);
    $("speed-value").textContent = Number($("speed").value).toFixed(2);
}

async function begin() {
    for (const id of REMEMBERED) if (remembered(id) !== null) $(id).value = remembered(id);
    $("key").value = keyInUse();
    $("key-cell").hidden = !keyInUse();
    if (/Mac|iPhone|iPad/.test(navigator.userAgent)) $("modifier").textContent = "⌘";
    count();
    await Promise.all([learn().catch(tellTrouble), keptTakes().then(all => {
        takes = all;
        for (const take of takes) addItem(take, true);
        if (takes.length) look(takes[0]);
    }, () => {})]);
    document.body.classList.remove("waits");
    showState();
    if (!$("key-cell").hidden && !keyInUse()) $("key").focus();
}

$("form").addEventListener("submit", e => {
    e.preventDefault();
    start(1);
});
$("compare").addEventListener("click", () => start(3));
$("stop").addEventListener("click", () => can("stop") && stop());
$("play").addEventListener("click", () => can("play") && playOrPause(player.take));
$("form").addEventListener("input", () => {
    count();
    remember();
});
$("format").addEventListener("change", remember);
$("key").addEventListener("change", () => {
    useKey($("key").value);
    tell("");
    learn().catch(tellTrouble);
});
document.addEventListener("keydown", e => {
    if (e.key === "Escape" && can("stop")) stop();
    if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) {
        e.preventDefault();
        start(1);
    }
});
offerVoices(learn);
begin();
