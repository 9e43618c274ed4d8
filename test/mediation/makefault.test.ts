/** `<makefault>`: faults of both SOAP versions, and plain ones. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { causes, testRefusals, run } from './test-sequences.ts'

const E11 =
  '<soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/"><soapenv:Body>' +
  '<soapenv:Fault xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/">'
const E12 =
  '<soapenv:Envelope xmlns:soapenv="http://www.w3.org/2003/05/soap-envelope"><soapenv:Body>' +
  '<soapenv:Fault xmlns:soapenv="http://www.w3.org/2003/05/soap-envelope">'
const END = '</soapenv:Fault></soapenv:Body></soapenv:Envelope>'
const DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>'

/** Content of makefault, its attributes, Content-Type, body. */
const FAULTS: readonly (readonly [string, string, string, string])[] = [
  [
    '<code value="s11:Client"/><reason value="a &amp; b"/>',
    '',
    'text/xml',
    `${E11}<faultcode>soapenv:Client</faultcode><faultstring>a &amp; b</faultstring>${END}`,
  ],
  [
    '<code value="s11:Server"/><reason expression="$ctx:ERROR_MESSAGE"/><role>urn:me</role><detail>why</detail>',
    'version="soap11"',
    'text/xml',
    `${E11}<faultcode>soapenv:Server</faultcode><faultstring>&lt;wrong&gt;</faultstring>` +
      `<faultactor>urn:me</faultactor><detail>why</detail>${END}`,
  ],
  [
    '<code value="s12:Receiver"/><reason value="r"/><node>urn:node</node><role>urn:me</role>' +
      '<detail><am:x>1</am:x><am:y/></detail>',
    'version="soap12"',
    'application/soap+xml',
    `${E12}<soapenv:Code><soapenv:Value>soapenv:Receiver</soapenv:Value></soapenv:Code>` +
      '<soapenv:Reason><soapenv:Text xml:lang="en">r</soapenv:Text></soapenv:Reason>' +
      '<soapenv:Node>urn:node</soapenv:Node><soapenv:Role>urn:me</soapenv:Role>' +
      `<soapenv:Detail><am:x xmlns:am="http://example.org/am">1</am:x>` +
      `<am:y xmlns:am="http://example.org/am"/></soapenv:Detail>${END}`,
  ],
  [
    '<code expression="\'Client\'"/><reason value="r"/><detail expression="$ctx:ERROR_MESSAGE"/>',
    'version="soap12"',
    'application/soap+xml',
    `${E12}<soapenv:Code><soapenv:Value>soapenv:Sender</soapenv:Value></soapenv:Code>` +
      '<soapenv:Reason><soapenv:Text xml:lang="en">r</soapenv:Text></soapenv:Reason>' +
      `<soapenv:Detail>&lt;wrong&gt;</soapenv:Detail>${END}`,
  ],
  // Without the attribute the namespace of the code names the version.
  [
    '<code value="tns:Receiver" xmlns:tns="http://www.w3.org/2003/05/soap-envelope"/><reason value="r"/>',
    '',
    'application/soap+xml',
    `${E12}<soapenv:Code><soapenv:Value>soapenv:Receiver</soapenv:Value></soapenv:Code>` +
      `<soapenv:Reason><soapenv:Text xml:lang="en">r</soapenv:Text></soapenv:Reason>${END}`,
  ],
  ['<reason value="r"/>', 'version="pox"', 'application/xml', '<Exception>r</Exception>'],
  ['<reason value="r"/><detail>d</detail>', 'version="pox"', 'application/xml', '<Exception>d</Exception>'],
]

for (const [within, attributes, type, expected] of FAULTS) {
  test(`makefault ${attributes} ${within.slice(0, 70)}`, async () => {
    const steps = `<makefault ${attributes}>${within}</makefault>`
    const { response, reports } = await run(steps, { properties: { ERROR_MESSAGE: '<wrong>' } })
    assert.equal(response.body, DECLARATION + expected)
    assert.equal(response.lines, `Content-Type: ${type}; charset=UTF-8\r\n`)
    assert.equal(response.status, type === 'application/xml' ? 200 : 500)
    assert.deepEqual(reports, [])
  })
}

test('an expression that gives no SOAP code becomes Server, with a warning', async () => {
  const ran = await run('<makefault><code expression="$ctx:x"/><reason value="r"/></makefault>')
  assert.match(ran.response.body, /<faultcode>soapenv:Server</)
  assert.deepEqual(causes(ran), ['the code of the fault is not a SOAP code'])
})

test('without version and literal code the Envelope of the message names the version, else it is soap11', async () => {
  const fault = '<makefault><code expression="\'Receiver\'"/><reason value="r"/></makefault>'
  const body = (namespace: string) =>
    `<payloadFactory><format>
      <e:Envelope xmlns:e="${namespace}"><e:Body><a xmlns=""/></e:Body></e:Envelope>
    </format></payloadFactory>`
  const [of11, of12] = ['http://schemas.xmlsoap.org/soap/envelope/', 'http://www.w3.org/2003/05/soap-envelope'] as const
  for (const [steps, namespace] of [
    [body(of12) + fault, of12],
    [body(of11) + fault, of11],
    [fault, of11],
  ] as const) {
    const { response } = await run(steps)
    assert.ok(response.body.includes(`<soapenv:Fault xmlns:soapenv="${namespace}">`), response.body)
  }
})

test('a fault marks the message as a response, and response="false" removes the mark', async () => {
  const fault = (response: string) => `<makefault version="pox" ${response}><reason value="r"/></makefault>`
  assert.equal((await run(fault(''))).message.isResponse, true)
  assert.equal((await run(fault('response="true"'))).message.isResponse, true)
  assert.equal((await run(fault('response="false"'))).message.isResponse, false)
  assert.equal((await run(fault('response="true"') + fault('response="false"'))).message.isResponse, false)
})

/** Content of makefault, its attributes, and its error. */
const REFUSED: readonly (readonly [string, string, string])[] = [
  ['', 'version="soap13"', 'makefault/version = soap13: expected one of soap11, soap12, pox'],
  ['', 'response="yes"', 'makefault/response = yes: expected one of true, false'],
  ['<reason value="r"/>', '', 'makefault/code: is missing'],
  ['<code value="s11:Client"/>', '', 'makefault/reason: is missing'],
  ['<code/><reason value="r"/>', '', 'code/value: expected either value or expression'],
  ['<code value="Client"/><reason value="r"/>', '', 'code/value = Client: is not a name of soap11 or soap12'],
  [
    '<code value="s12:Sender"/><reason value="r"/>',
    'version="soap11"',
    'code/value = s12:Sender: is not a name of soap11',
  ],
  ['<code value="s11:Sender"/><reason value="r"/>', '', 'code/value = s11:Sender: is not a code of soap11'],
  [
    '<code value="s12:Client"/><reason value="r"/>',
    'version="soap12"',
    'code/value = s12:Client: is not a code of soap12',
  ],
  ['<reason value="r" lang="en"/>', 'version="pox"', 'reason/lang: is an unknown attribute'],
  ['<reason value="r"/><detail>a<b/></detail>', 'version="pox"', 'detail: contains text, which has no effect'],
  ['<reason value="r"/><role><b/></role>', 'version="pox"', 'b: is not an element of <role>'],
  ['<reason value="r"/><faultactor/>', 'version="pox"', 'faultactor: is not an element of <makefault>'],
]

testRefusals(REFUSED.map(([within, attributes, said]) => [`<makefault ${attributes}>${within}</makefault>`, said]))
