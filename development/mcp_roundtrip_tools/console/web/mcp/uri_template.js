// URI templates (RFC 6570), as far as MCP servers use them: {id}, {+path}, {/page}, {?q,r}.

const EXPRESSION = /\{([+#./;?&]?)([^{}]+)\}/g;

/** Return the names of a template's variables, in order. */
export function variablesOf(template) {
  return [...template.matchAll(EXPRESSION)].flatMap(([, , names]) => namesIn(names));
}

/** Return the names of an expression without their modifiers. */
const namesIn = (names) => names.split(",").map((name) => name.replace(/\*$|:\d+$/, ""));

const JOINED = {
  "": ["", ","], "+": ["", ","], "#": ["#", ","],
  "?": ["?", "&"], "&": ["&", "&"], ";": [";", ";"], "/": ["/", "/"], ".": [".", "."],
};

/** Return the URI of a template with these values; variables without a value vanish. */
export function expand(template, values) {
  return template.replace(EXPRESSION, (whole, operator, names) => {
    const given = namesIn(names).filter((name) => values[name] !== undefined && values[name] !== "");
    if (given.length === 0) return "";
    const encode = operator === "+" || operator === "#" ? encodeURI : encodeURIComponent;
    const isNamed = ["?", "&", ";"].includes(operator);
    const texts = given.map((name) => (isNamed ? `${name}=` : "") + encode(values[name]));
    const [first, separator] = JOINED[operator];
    return first + texts.join(separator);
  });
}
