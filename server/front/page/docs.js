// The page at /docs: its examples name this server, its tables come from openapi.json.
const $ = id => document.getElementById(id);

for (const pre of document.querySelectorAll("pre")) {
    const button = document.createElement("button"), caption = pre.previousElementSibling;
    pre.textContent = pre.textContent.replaceAll("http://127.0.0.1:8080", location.origin)
        .replaceAll("ws://127.0.0.1:8080", location.origin.replace("http", "ws"));
    pre.tabIndex = 0;
    pre.setAttribute("role", "region");
    pre.setAttribute("aria-label", "Example: " + caption.textContent);
    button.textContent = "Copy";
    button.setAttribute("aria-label", "Copy: " + caption.textContent);
    button.onclick = async () => {
        try {
            await navigator.clipboard.writeText(pre.textContent);
            button.textContent = "Copied";
        } catch { /* not from a safe origin: then it is selected, and one key copies it */
            getSelection().selectAllChildren(pre);
            button.textContent = "Selected";
        }
        setTimeout(() => { button.textContent = "Copy"; }, 1500);
    };
    caption.append(button);
}

function row(body, ...cells) {
    const tr = body.insertRow();
    for (const cell of cells) {
        const td = tr.insertCell();
        if (typeof cell === "string") td.textContent = cell;
        else if (cell) td.append(cell);
    }
}

function code(text) {
    const c = document.createElement("code");
    c.textContent = text;
    return c;
}

function values(p) {
    if (p.enum) return p.enum.join(" ");
    if (p.oneOf) return 'a name, or {"id": name}';
    if (p.type === "boolean") return "true, false";
    if (p.maxLength) return `at most ${p.maxLength.toLocaleString("en")} characters`;
    if (p.minimum === undefined) return p.type === "string" ? "text" : p.type;
    return p.maximum === undefined ? `from ${p.minimum}` : `${p.minimum} to ${p.maximum}`;
}

async function tell() {
    const told = await (await fetch("openapi.json")).json(), { Speech, Session } = told.components.schemas;
    const fields = { ...Speech.properties, ...Session.properties };
    for (const [name, p] of Object.entries(fields)) {
        row($("field-rows"), code(name), values(p), p.default === undefined ? "" : String(p.default),
            p.description + (name in Speech.properties ? "" : " Of a session only."));
    }
    const services = {};
    for (const [path, methods] of Object.entries(told.paths)) {
        for (const [method, o] of Object.entries(methods)) (services[o.tags[0]] ??= []).push([method.toUpperCase(), path, o]);
    }
    for (const [service, paths] of Object.entries(services)) {
        const title = document.createElement("h3"), wide = document.createElement("div"), table = document.createElement("table");
        title.textContent = service === "utter" ? "Its own, as OpenAI's clients know it" : "For clients of " + service;
        title.id = "paths-" + service;
        wide.className = "wide";
        wide.tabIndex = 0;
        wide.setAttribute("role", "region");
        wide.setAttribute("aria-labelledby", title.id);
        for (const [method, path, o] of paths) row(table, code(`${method} ${path}`), o.summary + (o.security ? "" : " No key needed."));
        wide.append(table);
        $("services").append(title, wide);
    }
}
tell().catch(e => { $("services").textContent = "openapi.json did not come: " + e.message; });
