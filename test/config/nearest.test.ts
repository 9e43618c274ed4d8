import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nearest } from '../../src/config/nearest.ts'

const KNOWN = [
  'server.hostname',
  'server.offset',
  'database.apim_db.hostname',
  'transport.ws',
  'transport.passthru_http',
  'transport.passthru_http.http.socket.timeout',
  'transport.passthru_http.listener.parameters.port',
  'user_store.properties',
  'apim.cors',
  'ws_endpoint',
  'virtual_host.wss_endpoint',
  'enable_outbound_auth_header',
  'listener.enable',
]

const GUESSES: readonly (readonly [misspelt: string, meant: string])[] = [
  ['server.ofset', 'server.offset'],
  ['sevrer.offset', 'server.offset'],
  ['Server.Offset', 'server.offset'],
  ['transport.passthru_http.http.soket.timout', 'transport.passthru_http.http.socket.timeout'],
  ['transport.passthru_http.http.socket_timeout', 'transport.passthru_http.http.socket.timeout'],
  // The group is missing or wrong.
  ['hostname', 'server.hostname'],
  ['passthru_http', 'transport.passthru_http'],
  ['transport.passthru_http.port', 'transport.passthru_http.listener.parameters.port'],
  ['wss_endpoint', 'virtual_host.wss_endpoint'],
  ['remove_outbound_auth_header', 'enable_outbound_auth_header'],
  // A long common prefix does not make two short names similar.
  ['transport.jms', ''],
  ['transport.http', ''],
  ['event_listener.properties', ''],
  ['management_api.cors', ''],
  ['sender.enable', ''],
  ['datasource', ''],
  ['', ''],
]

for (const [misspelt, meant] of GUESSES) {
  test(`the guess for ${misspelt || 'nothing'} is ${meant || 'nothing'}`, () => {
    assert.equal(nearest(misspelt, KNOWN), meant)
  })
}

test('the first of two equally near names is the guess, and no name is near to an empty list', () => {
  assert.equal(nearest('server.mede', ['server.mode', 'server.mude']), 'server.mode')
  assert.equal(nearest('server.mode', []), '')
})
