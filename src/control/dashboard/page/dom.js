/** Makes elements. Texts become text nodes, so nothing that the gateway has received is ever markup. */

const SVG = 'http://www.w3.org/2000/svg'

/** `attributes`: a value of null leaves the attribute out. */
export function element(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children)
}

export function drawing(name, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, name), attributes, children)
}

function filled(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) if (value !== null) made.setAttribute(name, String(value))
  made.append(...children)
  return made
}

/** Writes a text only where it differs: a change costs a layout. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text
}

export function setAttribute(node, name, value) {
  const text = String(value)
  if (node.getAttribute(name) !== text) node.setAttribute(name, text)
}

export function byId(id) {
  return document.getElementById(id)
}
