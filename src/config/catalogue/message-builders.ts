/** Message builders and formatters by content type; blocking calls may have their own. */
import { type Key, live, repeatedSection, required, section } from '../key.ts'
import { text } from '../kinds.ts'

/** Key of `[message_builders]` -> media type. */
const BUILT_TYPES = {
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
/** Key of `[message_formatters]` -> media type. */
export const FORMATTED_TYPES = {
  ...BUILT_TYPES,
  text_xml: 'text/xml',
  soap_xml: 'application/soap+xml',
} as const

type ModuleKeys<T> = { readonly [P in keyof T]: Key<string> }

const OF_CALLS = 'that of all messages'

function modules<T extends Readonly<Record<string, string>>>(
  types: T,
  does: string,
  otherwise = 'the built-in one',
): ModuleKeys<T> {
  const keys = Object.entries(types).map(([name, type]) => [
    name,
    live(text('', `ES module from the home folder on that ${does} ${type}; empty: ${otherwise}.`)),
  ])
  return Object.fromEntries(keys) as ModuleKeys<T>
}

function row(does: string) {
  return {
    content_type: required(live(text('', `Content type that the module ${does}.`))),
    class: required(live(text('', 'ES module from the home folder on.'))),
  }
}

const ROLES = { roles: ['gateway-worker'] } as const

export const messageBuilders = section(
  'message_builders',
  'Message builders (readers), by content type.',
  modules(BUILT_TYPES, 'reads'),
  ROLES,
)

export const blockingMessageBuilders = section(
  'blocking.message_builders',
  'Message builders of blocking calls of sequences, by content type.',
  modules(BUILT_TYPES, 'reads', OF_CALLS),
  ROLES,
)

export const messageFormatters = section(
  'message_formatters',
  'Message formatters (writers), by content type.',
  modules(FORMATTED_TYPES, 'writes'),
  ROLES,
)

export const blockingMessageFormatters = section(
  'blocking.message_formatters',
  'Message formatters of blocking calls of sequences, by content type.',
  modules(FORMATTED_TYPES, 'writes', OF_CALLS),
  ROLES,
)

export const customMessageBuilders = repeatedSection(
  'custom_message_builders',
  'A message builder for a further content type.',
  row('reads'),
  ROLES,
)

export const blockingCustomMessageBuilders = repeatedSection(
  'blocking.custom_message_builders',
  'A message builder of blocking calls for a further content type.',
  row('reads'),
  ROLES,
)

export const customMessageFormatters = repeatedSection(
  'custom_message_formatters',
  'A message formatter for a further content type.',
  row('writes'),
  ROLES,
)

export const blockingCustomMessageFormatters = repeatedSection(
  'blocking.custom_message_formatters',
  'A message formatter of blocking calls for a further content type.',
  row('writes'),
  ROLES,
)
