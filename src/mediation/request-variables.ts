/** Variables of a request that sequences read as properties: `query.param.NAME` and `uri.var.NAME`. */

/** First value of a query parameter, decoded; undefined without one. */
export function queryParameter(target: string, name: string): string | undefined {
  const at = target.indexOf('?')
  return at === -1 ? undefined : (new URLSearchParams(target.slice(at + 1)).get(name) ?? undefined)
}

/** Decoded segment of the path at `{name}` in the template of the resource; undefined without one. */
export function templateVariable(template: string, path: string, name: string): string | undefined {
  const at = template.split('/').indexOf(`{${name}}`)
  const segment = at === -1 ? undefined : path.split('?', 1)[0]!.split('/')[at]
  if (segment === undefined) return undefined
  try {
    return decodeURIComponent(segment)
  } catch {
    // Not UTF-8: the text as it came.
    return segment
  }
}
