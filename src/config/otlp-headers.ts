/** Fields of OTLP requests as one text, as OpenTelemetry has them: `name=value,other=value`, percent-encoded values. */
import { isFieldName } from './kinds.ts'

/** Fields that the gateway sets itself. */
const OWN = ['content-type', 'content-length', 'host', 'connection', 'transfer-encoding', 'accept', 'user-agent']
const VALUE = /^[\x20-\x7e]{1,4096}$/

/** Undefined for a text of another form. */
export function otlpHeaders(text: string): Readonly<Record<string, string>> | undefined {
  const pairs = text.split(',').map(pair => pair.trim())
  const headers: Record<string, string> = {}
  for (const pair of pairs.filter(one => one !== '')) {
    const at = pair.indexOf('=')
    const name = pair.slice(0, Math.max(0, at)).trim().toLowerCase()
    const value = decoded(pair.slice(at + 1).trim())
    if (!isFieldName(name) || OWN.includes(name) || !VALUE.test(value)) return undefined
    headers[name] = value
  }
  return headers
}

/** '' where it is not percent-encoded properly. */
function decoded(value: string): string {
  try {
    return decodeURIComponent(value)
  } catch {
    return ''
  }
}
