/** Message builders and formatters by content type; calls use those of the messages that pass. */
import { allInert, type Key, live, repeatedSection, required, section } from '../key.ts'
import { text } from '../kinds.ts'

const BLOCKING = 'there is no blocking transport: calls use the builders and formatters of all messages'

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

function modules<T extends Readonly<Record<string, string>>>(types: T, does: string): ModuleKeys<T> {
  const keys = Object.entries(types).map(([name, type]) => [
    name,
    live(text('', `ES module from the home folder on that ${does} ${type}; empty: the built-in one.`)),
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
  'Message builders of the blocking transport, by content type.',
  allInert(modules(BUILT_TYPES, 'reads'), BLOCKING),
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
  'Message formatters of the blocking transport, by content type.',
  allInert(modules(FORMATTED_TYPES, 'writes'), BLOCKING),
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
  'A message builder of the blocking transport for a further content type.',
  allInert(row('reads'), BLOCKING),
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
  'A message formatter of the blocking transport for a further content type.',
  allInert(row('writes'), BLOCKING),
  ROLES,
)
