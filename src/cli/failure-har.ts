/**
 * Kept exchanges as an HTTP archive (HAR 1.2), which browsers and HAR viewers import. The recorder keeps neither fields
 * nor bodies, so these lists are empty; what HAR has no member for is in members that begin with an underscore.
 */
import { REASON_PHRASES } from '../faults/reason-phrases.ts'
import type { RecordedFailure } from '../observe/flight-recorder.ts'
import type { StateName } from '../protocol/states.ts'
import { causeOf, statesOf } from './failure-states.ts'

const UNKNOWN = -1
/** Characters that no URL has. */
const NOT_OF_URLS = /[^!#-;=?-[\]_a-z~]|%(?![\da-f]{2})/gi

export function harOf(rows: readonly RecordedFailure[]) {
  const entries = rows.toSorted((one, other) => one.startedMs - other.startedMs).map(entryOf)
  return { log: { version: '1.2', creator: { name: 'Sluice', version: '1' }, pages: [], entries } }
}

function entryOf(row: RecordedFailure) {
  const timings = timingsOf(row)
  const url = urlOf(row)
  return {
    startedDateTime: new Date(row.startedMs).toISOString(),
    time: Object.values(timings).reduce((sum, ms) => sum + Math.max(0, ms), 0),
    request: {
      method: row.method === '' ? 'UNKNOWN' : row.method,
      url,
      httpVersion: 'HTTP/1.1',
      cookies: [],
      headers: [],
      queryString: queryOf(url),
      headersSize: UNKNOWN,
      bodySize: row.requestBodyBytes,
    },
    response: {
      status: row.status,
      statusText: REASON_PHRASES[row.status] ?? '',
      httpVersion: 'HTTP/1.1',
      cookies: [],
      headers: [],
      content: { size: row.responseBodyBytes, mimeType: 'x-unknown' },
      redirectURL: '',
      headersSize: UNKNOWN,
      bodySize: row.responseBodyBytes,
      ...(row.kind === 'slow' ? {} : { _error: causeOf(row) }),
    },
    cache: {},
    timings,
    connection: row.source,
    comment: causeOf(row),
    _sluice: row,
  }
}

/** Milliseconds. Their sum is the duration: what is neither connecting nor the backend's is `blocked`. */
function timingsOf(row: RecordedFailure) {
  const spent = (...states: readonly StateName[]) =>
    statesOf(row)
      .filter(({ side, state }) => side === 'target' && states.includes(state))
      .reduce((sum, { fromUs, toUs }) => sum + toUs - fromUs, 0) / 1000
  const send = spent('REQUEST_HEAD', 'REQUEST_BODY', 'UNWRITABLE')
  const wait = spent('REQUEST_DONE')
  const receive = spent('RESPONSE_HEAD', 'RESPONSE_BODY', 'EARLY_HEAD', 'EARLY_BODY', 'TUNNEL')
  const connect = spent('CONNECTING')
  const blocked = Math.max(0, row.durationUs / 1000 - send - wait - receive - connect)
  return { blocked, dns: UNKNOWN, connect: connect === 0 ? UNKNOWN : connect, ssl: UNKNOWN, send, wait, receive }
}

/** Absolute, and of characters that URLs have, whatever a client has sent. */
function urlOf({ scheme, host, path }: RecordedFailure): string {
  const authority = /^[\w.:[\]-]+$/.test(host) ? host : 'unknown'
  const target = /^https?:\/\//i.test(path)
    ? path
    : `${scheme}://${authority}${path.startsWith('/') ? path : `/${path}`}`
  return target.split('#')[0]!.replace(NOT_OF_URLS, encodeURIComponent)
}

function queryOf(url: string): readonly { readonly name: string; readonly value: string }[] {
  const at = url.indexOf('?')
  if (at < 0) return []
  const pairs = url
    .slice(at + 1)
    .split('&')
    .filter(pair => pair !== '')
  return pairs.map(pair => {
    const [name = '', ...rest] = pair.split('=')
    return { name, value: rest.join('=') }
  })
}
