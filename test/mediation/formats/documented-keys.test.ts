/** Each documented key of builders, formatters and conversions acts, from `deployment.toml` to bytes of a message. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { examine } from '../../../src/config/load.ts'
import { loadCustomFormats } from '../../../src/mediation/formats/custom-format.ts'
import { formatSettings } from '../../../src/mediation/formats/format-settings.ts'
import { MessageFormats } from '../../../src/mediation/formats/message-formats.ts'
import { Message } from '../../../src/mediation/message.ts'
import { temporaryHome } from '../../config/temporary-home.ts'

const BUILT: Readonly<Record<string, string>> = {
  application_xml: 'application/xml',
  form_urlencoded: 'application/x-www-form-urlencoded',
  multipart_form_data: 'multipart/form-data',
  text_plain: 'text/plain',
  application_json: 'application/json',
  json_badgerfish: 'application/json/badgerfish',
  text_javascript: 'text/javascript',
  octet_stream: 'application/octet-stream',
  application_binary: 'application/binary',
}
const FORMATTED: Readonly<Record<string, string>> = {
  ...BUILT,
  text_xml: 'text/xml',
  soap_xml: 'application/soap+xml',
}

const MODULES = {
  'modules/own.mjs': `
    export const build = (bytes, type) => ({ text: 'built ' + type.split(';')[0] + ' ' + bytes.length })
    export const format = (payload, type) => 'formatted ' + type.split(';')[0] + ' ' + JSON.stringify(payload)`,
}

async function formatsOf(t: TestContext, toml: string): Promise<MessageFormats> {
  const home = temporaryHome(t, { 'deployment.toml': toml, ...MODULES })
  const { configuration, errors } = examine(home, [], join(home, 'data'))
  assert.deepEqual(errors, [])
  const settings = formatSettings(configuration)
  return new MessageFormats(settings, await loadCustomFormats(home, settings))
}

/** What a message of that type and body becomes as messageType; '': it is only read. */
function passed(formats: MessageFormats, type: string, body: string, messageType: string): string {
  const source = formats.source({ kind: 'bytes', bytes: Buffer.from(body) }, type, '', false)
  const message = new Message(name => (name === 'content-type' ? type : undefined))
  message.receive({ method: 'POST', target: '/', status: 0, reason: '' }, source)
  const { payload } = message
  if (messageType === '') return payload?.kind === 'text' ? payload.text : JSON.stringify(payload)
  message.set('axis2', 'messageType', messageType)
  const written = formats.format(message).body
  assert.equal(written.kind, 'bytes')
  const text = Buffer.from((written as { readonly bytes: Uint8Array }).bytes).toString()
  return text.replace('<?xml version="1.0" encoding="UTF-8"?>', '')
}

for (const [key, type] of Object.entries(BUILT)) {
  test(`message_builders.${key} builds ${type}`, async t => {
    const formats = await formatsOf(t, `[message_builders]\n${key} = "modules/own.mjs"`)
    assert.equal(passed(formats, `${type}; v=1`, 'xyz', ''), `built ${type} 3`)
  })
}

for (const [key, type] of Object.entries(FORMATTED)) {
  test(`message_formatters.${key} writes ${type}`, async t => {
    const formats = await formatsOf(t, `[message_formatters]\n${key} = "modules/own.mjs"`)
    assert.equal(passed(formats, 'text/x-any', 'abc', type), `formatted ${type} {"text":"abc"}`)
  })
}

test('custom_message_builders and custom_message_formatters act for their content types', async t => {
  const row = (name: string) =>
    `[[custom_message_${name}]]\ncontent_type = "application/x-own"\nclass = "modules/own.mjs"\n`
  const formats = await formatsOf(t, row('builders') + row('formatters'))
  assert.equal(passed(formats, 'application/x-own', 'abcd', ''), 'built application/x-own 4')
  const written = passed(formats, 'application/x-own', 'abcd', 'application/x-own')
  assert.equal(written, 'formatted application/x-own {"text":"built application/x-own 4"}')
})

const [JSON_TYPE, XML] = ['application/json', 'application/xml']
const NIL = '<a><b xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:nil="true"/></a>'

/** [lines of `[mediation]`, body, what it becomes in the other format]. */
const CONVERSIONS: readonly (readonly [lines: string, body: string, becomes: string])[] = [
  ['synapse.preserve_namespace_on_xml_to_json = true', '<p:a xmlns:p="urn:p">x</p:a>', '{"p_a":"x"}'],
  ['synapse.enable_namespace_declaration = true', '<p:a xmlns:p="urn:p">x</p:a>', '{"a":{"@xmlns_p":"urn:p","$":"x"}}'],
  ['synapse.enable_xml_nil = true', NIL, '{"a":{"b":null}}'],
  ['synapse.enable_xml_nil = true', '{"a":{"b":null}}', `<jsonObject>${NIL}</jsonObject>`],
  ['synapse.enable_auto_primitive = false', '<a><b>1</b></a>', '{"a":{"b":"1"}}'],
  ["synapse.disable_auto_primitive_regex = '\\d{5,}'", '<a><b>12345</b><c>1</c></a>', '{"a":{"b":"12345","c":1}}'],
  ["synapse.disable_custom_replace_regex = '@@@'", '<a><b>@@@12</b></a>', '{"a":{"b":"12"}}'],
  [
    "synapse.disable_auto_primitive_regex = '\\d{5,}'\nsynapse.disable_custom_replace_regex = '@@@'",
    '<a><b>@@@12</b><c>12345</c></a>',
    '{"a":{"b":"12","c":"12345"}}',
  ],
  ['synapse.json_out_auto_array = false', '<a><b>1</b><b>2</b></a>', '{"a":{"b":1,"b":2}}'],
  [
    'synapse.build_valid_nc_name = true',
    '{"c/d":3}',
    '<jsonObject><c_JsonReader_47_d>3</c_JsonReader_47_d></jsonObject>',
  ],
]

for (const [lines, body, becomes] of CONVERSIONS) {
  test(`${lines.replace('\n', ', ')}: ${body} becomes ${becomes}`, async t => {
    const [from, to] = body.startsWith('<') ? [XML, JSON_TYPE] : [JSON_TYPE, XML]
    assert.equal(passed(await formatsOf(t, `[mediation]\n${lines}`), from, body, to), becomes)
    assert.notEqual(passed(await formatsOf(t, ''), from, body, to), becomes)
  })
}
