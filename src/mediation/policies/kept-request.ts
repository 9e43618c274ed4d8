/**
 * Keeps the head or the body of a request, before any flow changes it, for the response flow: the first sequences of a
 * request flow whose response flow asks an interceptor service with them.
 */
import { servicesOf } from '../backend-calls.ts'
import { mediator } from '../mediator.ts'
import type { Message } from '../message.ts'
import type { SequencePlan } from '../sequence-plan.ts'

/** Parts of a request that a response flow may ask for, by the names in `includes`. */
export type KeptPart = 'request_headers' | 'request_body'

type Fields = Iterable<readonly [name: string, value: string]>

export const keepRequest = mediator<KeptPart>({
  name: 'keepRequest',
  attributes: ['part'],
  elements: [],

  parse(element, parser) {
    const part = element.attribute('part')
    if (part === 'request_headers' || part === 'request_body') return part
    return parser.error(element, 'part', 'expected request_headers or request_body', 'correct it', part)
  },

  needs: part => (part === 'request_body' ? 'worker' : 'heads'),

  compile: part => message => {
    const kept = part === 'request_body' ? { body: bodyOf(message) } : { headers: headersOf(message.keptFields()) }
    message.request = { ...message.request, ...kept }
    return true
  },
})

/** Base64; null for a body in a file, which would fill memory until the response has come. */
function bodyOf(message: Message): string | null {
  const { body } = servicesOf(message).transfer(message)
  if (body.kind === 'bytes') return Buffer.from(body.bytes).toString('base64')
  return body.kind === 'file' ? null : ''
}

/** Values by names in lower case, those of one name as a list (RFC 9110 5.3), without the length of the body. */
export function headersOf(fields: Fields): Readonly<Record<string, string>> {
  const headers = new Map<string, string>()
  for (const [name, value] of fields) {
    const lower = name.toLowerCase()
    if (lower !== 'content-length') headers.set(lower, headers.has(lower) ? `${headers.get(lower)}, ${value}` : value)
  }
  return Object.fromEntries(headers)
}

export const KEEPING: Readonly<Record<KeptPart, SequencePlan>> = {
  request_headers: keeping('request_headers'),
  request_body: keeping('request_body'),
}

function keeping(part: KeptPart): SequencePlan {
  return {
    name: `--keep-${part.replace('_', '-')}--`,
    label: `the policy callInterceptorService with ${part}`,
    steps: [{ mediator: keepRequest.name, line: 1, settings: part }],
    onError: '',
    requestFields: [],
    calls: [],
    isDefault: false,
  }
}
