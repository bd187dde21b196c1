// URI templates (RFC 6570), as far as MCP servers use them: {id}, {+path}, {/page}, {?q,r}.

const EXPRESSION = /\{([+#./;?&]?)([^{}]+)\}/g;

/** Return the variables of a template, in order. An expression of one segment or parameter may have no value. */
export function variablesOf(template) {
  return [...template.matchAll(EXPRESSION)].flatMap(([, operator, names]) =>
    namesIn(names).map((name) => ({ name, required: ["", "+"].includes(operator) })));
}

/** Return the names of an expression without their modifiers. */
const namesIn = (names) => names.split(",").map((name) => name.replace(/\*$|:\d+$/, ""));

const JOINED = {
  "": ["", ","], "+": ["", ","], "#": ["#", ","],
  "?": ["?", "&"], "&": ["&", "&"], ";": [";", ";"], "/": ["/", "/"], ".": [".", "."],
};

/** Encode all reserved characters, also the five that encodeURIComponent leaves (RFC 3986, 2.2). */
const encodeReserved = (text) =>
  encodeURIComponent(text).replace(/[!'()*]/g, (each) => `%${each.charCodeAt(0).toString(16).toUpperCase()}`);

/** Return the URI of a template with these values; variables without a value vanish. */
export function expand(template, values) {
  return template.replace(EXPRESSION, (whole, operator, names) => {
    const given = namesIn(names).filter((name) => values[name] !== undefined && values[name] !== "");
    if (given.length === 0) return "";
    const encode = operator === "+" || operator === "#" ? encodeURI : encodeReserved;
    const isNamed = ["?", "&", ";"].includes(operator);
    const texts = given.map((name) => (isNamed ? `${name}=` : "") + encode(values[name]));
    const [first, separator] = JOINED[operator];
    return first + texts.join(separator);
  });
}
