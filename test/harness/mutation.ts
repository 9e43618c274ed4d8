/** Damages messages, valid and invalid ones, in ways that parsers are known to disagree about. */
import type { Random } from './random.ts'

/** Texts that are inserted: line ends and parts of them, framing, numbers, and whole requests. */
const SCRAPS = [
  '\r\n',
  '\r',
  '\n',
  '\n\n',
  '\r\n\r\n',
  '\r\r\n',
  '\0',
  ' ',
  '\t',
  '\x0b',
  ':',
  ';',
  ',',
  '0',
  '5',
  'ff',
  '\xff',
  '0\r\n\r\n',
  'Content-Length: 5\r\n',
  'Content-Length: 0\r\n',
  'Content-Length:5,5\r\n',
  'content-length : 6\r\n',
  'Transfer-Encoding: chunked\r\n',
  'Transfer-Encoding: identity\r\n',
  'Transfer-Encoding:\x0bchunked\r\n',
  'Transfer-Encoding: chunked, gzip\r\n',
  ' folded\r\n',
  'Connection: close\r\n',
  'Connection: Content-Length, Transfer-Encoding, Host\r\n',
  'Host: evil.test\r\n',
  'Expect: 100-continue\r\n',
  'Upgrade: h2c\r\n',
  'HTTP/1.1',
  'HTTP/1.0',
  'GET /echo/evil HTTP/1.1\r\nHost: a\r\n\r\n',
  'POST /echo/evil HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n',
  'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n',
]

function once(random: Random, message: string, others: readonly string[]): string {
  const at = random.below(message.length + 1)
  const length = random.between(1, random.once(4) ? 60 : 4)
  const before = message.slice(0, at)
  switch (random.below(9)) {
    case 0: // another byte
      return before + String.fromCharCode(random.below(256)) + message.slice(at + 1)
    case 1: // a byte with one bit changed
      return (
        before + String.fromCharCode((message.charCodeAt(at) ^ (1 << random.below(8))) & 255) + message.slice(at + 1)
      )
    case 2: // bytes lost
      return before + message.slice(at + length)
    case 3: // bytes twice
      return before + message.slice(at, at + length) + message.slice(at)
    case 4: // a scrap put in
    case 5:
      return before + random.pick(SCRAPS) + message.slice(at)
    case 6: // a scrap at the beginning of some line
      return message.replace(/\r\n/g, end => (random.once(4) ? end + random.pick(SCRAPS) : end))
    case 7: // the head of one, the tail of another
      return before + random.pick(others).slice(random.below(200))
    default: {
      // some digits, one more or less
      return message.replace(/\d+/g, digits =>
        random.once(5) ? String(Number(digits) + random.between(-1, 1)) : digits,
      )
    }
  }
}

/** Picks one of `messages` and damages it one to four times; now and then returns it unchanged. */
export function mutate(random: Random, messages: readonly string[]): string {
  let message = random.pick(messages)
  for (let times = random.below(5); times > 0; times--) message = once(random, message, messages)
  return message
}
