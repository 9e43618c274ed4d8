/** Media type of a fault, by the fields of its request. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type FaultFormat, faultFormat } from '../../src/faults/fault-format.ts'

const JSON_TYPE = 'application/json'
const XML = 'application/xml'

const ACCEPTED: readonly (readonly [accept: string, format: FaultFormat])[] = [
  ['application/xml', XML],
  ['text/xml', XML],
  ['APPLICATION/XML', XML],
  ['application/xml;charset=utf-8', XML],
  ['application/xml, application/json', JSON_TYPE],
  ['application/json, application/xml', JSON_TYPE],
  ['application/json;q=0.5, application/xml', XML],
  ['application/json;q=0.5, application/xml;q=0.4', JSON_TYPE],
  ['application/xml, */*', JSON_TYPE],
  ['application/xml, */*;q=0.8', JSON_TYPE],
  ['text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8', JSON_TYPE],
  ['application/xml;q=0', JSON_TYPE],
  ['application/xml;q=0, */*', JSON_TYPE],
  ['application/json;q=0, application/xml;q=0.1', XML],
  ['application/json;q=0, text/xml', XML],
  ['application/*, text/xml;q=0.9', JSON_TYPE],
  ['application/*;q=0.2, text/xml;q=0.9', XML],
  ['application/hal+xml', JSON_TYPE],
  ['application/xml ; q = 0.7 , application/json ; Q=0.6', XML],
  ['application/xml;q=nonsense, application/json', JSON_TYPE],
  [',,,application/xml,,', XML],
  [`${'a/b,'.repeat(40)}application/xml`, JSON_TYPE],
]

for (const [accept, format] of ACCEPTED) {
  test(`RFC 9110 12.5.1: Accept: ${accept.slice(0, 80)}`, () => assert.equal(faultFormat(['accept', accept]), format))
}

const REQUESTS: readonly (readonly [name: string, captured: readonly string[], format: FaultFormat])[] = [
  ['no captured field', [], JSON_TYPE],
  ['several Accept fields are one list', ['accept', 'application/xml;q=0.4', 'accept', 'application/json'], JSON_TYPE],
  ['SOAP 1.1', ['content-type', 'text/xml; charset=utf-8', 'soapaction', '"urn:add"'], 'text/xml'],
  ['SOAP 1.1 with an empty action', ['soapaction', ''], 'text/xml'],
  ['SOAP 1.2', ['content-type', 'application/soap+xml; action="urn:add"'], 'application/soap+xml'],
  ['SOAP 1.2 regardless of Accept', ['accept', XML, 'content-type', 'Application/SOAP+XML'], 'application/soap+xml'],
  ['an XML request that is not SOAP', ['content-type', 'application/xml'], JSON_TYPE],
  ['an XML request that accepts XML', ['content-type', 'application/xml', 'accept', 'application/xml'], XML],
]

for (const [name, captured, format] of REQUESTS) {
  test(`media type for ${name}`, () => assert.equal(faultFormat(captured), format))
}
