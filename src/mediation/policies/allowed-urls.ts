/** URLs in texts, and lists of those that a text may hold. */

interface AllowedUrl {
  /** '' for any. */
  readonly protocol: string
  /** In lower case, with its port if it has one. */
  readonly host: string
  /** `*.example.com`: every host below. */
  readonly isWildcard: boolean
  /** Path with `/` at its end, below which all is allowed. */
  readonly path: string
}

/** `example.com`, `*.example.com`, or a URL that begins with its scheme; undefined for other texts. */
export function allowedUrl(text: string): AllowedUrl | undefined {
  const given = text.trim()
  const isUrl = /^https?:\/\//i.test(given)
  const isWildcard = /^(?:https?:\/\/)?\*\./i.test(given)
  const parsed = parsedUrl((isUrl ? given : `https://${given}`).replace('*.', ''))
  if (parsed === undefined || parsed.username !== '' || parsed.search !== '' || parsed.hash !== '') return undefined
  const path = parsed.pathname.endsWith('/') ? parsed.pathname : `${parsed.pathname}/`
  return { protocol: isUrl ? parsed.protocol : '', host: parsed.host, isWildcard, path }
}

/** Also behind a letter or `_`, where readers of Markdown find one. */
const URL_START = /https?:\/\//gi
/** Characters that end a URL in a text, and those that a sentence or Markdown adds at its end. */
const URL_END = /[\s"'<>\\^`{|}]/
const TRAILING = '.,;:!?)]_*~'

/** Each URL with a scheme of HTTP; undefined for one that does not parse. */
export function* urlsIn(text: string): Generator<URL | undefined> {
  for (const { index } of text.matchAll(URL_START)) {
    const rest = text.slice(index, index + 2048)
    const found = rest.search(URL_END)
    let end = found === -1 ? rest.length : found
    while (TRAILING.includes(rest[end - 1]!)) end--
    yield parsedUrl(rest.slice(0, end))
  }
}

/** A URL that does not parse is not allowed. */
export function isAllowed(url: URL | undefined, allowed: readonly AllowedUrl[]): boolean {
  if (url === undefined) return false
  return allowed.some(({ protocol, host, isWildcard, path }) => {
    const isHost = isWildcard ? url.host.endsWith(`.${host}`) : url.host === host
    return isHost && (protocol === '' || url.protocol === protocol) && `${url.pathname}/`.startsWith(path)
  })
}

function parsedUrl(text: string): URL | undefined {
  return URL.canParse(text) ? new URL(text) : undefined
}
