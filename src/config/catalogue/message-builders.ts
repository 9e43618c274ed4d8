/** Message builders and formatters by content type, of both transports; not acted on. */
import { allInert, type Key, repeatedSection, required, section } from '../key.ts'
import { text } from '../kinds.ts'

const BUILDERS = 'not built yet: message builders and formatters'
const BLOCKING = 'there is no blocking transport'

/** Key -> content type. */
const BUILT = {
  application_xml: 'application/xml',
  form_urlencoded: 'application/x-www-form-urlencoded',
  multipart_form_data: 'multipart/form-data',
  text_plain: 'text/plain',
  application_json: 'application/json',
  json_badgerfish: 'application/json/badgerfish',
  text_javascript: 'text/javascript',
  octet_stream: 'application/octet-stream',
  application_binary: 'application/binary',
} as const
const FORMATTED = { ...BUILT, text_xml: 'text/xml', soap_xml: 'application/soap+xml' } as const

type Classes<T> = { readonly [P in keyof T]: Key<string> }

function classes<T extends Readonly<Record<string, string>>>(types: T, does: string, reason: string): Classes<T> {
  const keys = Object.entries(types).map(([name, type]) => [
    name,
    text('', `Class that ${does} ${type}; empty: the built-in class.`),
  ])
  return allInert(Object.fromEntries(keys), reason) as Classes<T>
}

function row(does: string, reason: string) {
  return allInert(
    {
      content_type: required(text('', `Content type that the class ${does}.`)),
      class: required(text('', 'The class.')),
    },
    reason,
  )
}

const ROLES = { roles: ['gateway-worker'] } as const

export const messageBuilders = section(
  'message_builders',
  'Message builders (readers), by content type.',
  classes(BUILT, 'reads', BUILDERS),
  ROLES,
)

export const blockingMessageBuilders = section(
  'blocking.message_builders',
  'Message builders of the blocking transport, by content type.',
  classes(BUILT, 'reads', BLOCKING),
  ROLES,
)

export const messageFormatters = section(
  'message_formatters',
  'Message formatters (writers), by content type.',
  classes(FORMATTED, 'writes', BUILDERS),
  ROLES,
)

export const blockingMessageFormatters = section(
  'blocking.message_formatters',
  'Message formatters of the blocking transport, by content type.',
  classes(FORMATTED, 'writes', BLOCKING),
  ROLES,
)

export const customMessageBuilders = repeatedSection(
  'custom_message_builders',
  'A message builder for a further content type.',
  row('reads', BUILDERS),
  ROLES,
)

export const blockingCustomMessageBuilders = repeatedSection(
  'blocking.custom_message_builders',
  'A message builder of the blocking transport for a further content type.',
  row('reads', BLOCKING),
  ROLES,
)

export const customMessageFormatters = repeatedSection(
  'custom_message_formatters',
  'A message formatter for a further content type.',
  row('writes', BUILDERS),
  ROLES,
)

export const blockingCustomMessageFormatters = repeatedSection(
  'blocking.custom_message_formatters',
  'A message formatter of the blocking transport for a further content type.',
  row('writes', BLOCKING),
  ROLES,
)
