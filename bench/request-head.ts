/**
 * The request head for every peer: about 1 KB with a 600-character bearer token, as an API client sends it. The default
 * head of load generators (forty bytes) would make every proxy look faster than it is in use.
 */

/** 600 characters in the form of a JWT, the same in every run. */
function bearerToken(): string {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
  let seed = 42
  const part = (length: number): string => {
    let text = ''
    while (text.length < length) {
      seed = (Math.imul(seed, 1103515245) + 12345) >>> 0
      text += alphabet[seed >>> 26]
    }
    return text
  }
  return `${part(60)}.${part(196)}.${part(342)}`
}

export const REQUEST_FIELDS: Readonly<Record<string, string>> = {
  Host: 'gateway.example.com',
  'User-Agent': 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36',
  Accept: 'application/json, text/plain, */*',
  'Accept-Language': 'en-GB,en;q=0.9,de;q=0.8',
  'Accept-Encoding': 'gzip, deflate, br',
  Authorization: `Bearer ${bearerToken()}`,
  Origin: 'https://portal.example.com',
  Referer: 'https://portal.example.com/patients/4711/observations',
  'X-Request-Id': '6f1c2a34-9f1b-4b7e-8c58-0c2f5d7e9a10',
  'Cache-Control': 'no-cache',
}

export function requestHead(method: string, path: string, extra: Readonly<Record<string, string>> = {}): string {
  const fields = Object.entries({ ...REQUEST_FIELDS, ...extra }).map(([name, value]) => `${name}: ${value}\r\n`)
  return `${method} ${path} HTTP/1.1\r\n${fields.join('')}\r\n`
}
