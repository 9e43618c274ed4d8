/** Unknown keys and misplaced tables, with hints. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { formatDiagnostic } from '../../src/config/diagnostics.ts'
import { examine } from '../../src/config/load.ts'
import { temporaryHome } from './temporary-home.ts'

const WRONG_SECTION: readonly (readonly [toml: string, hint: string])[] = [
  ['[server]\nhealth_port = 1', 'did you mean management.health_port? It belongs in [management]'],
  // The nearest of several sections that have the key.
  ['[apim.cors]\nhostname = "h"', 'did you mean apim.notification.hostname? It belongs in [apim.notification]'],
  ['[apim.oauth_config]\nname = "x"', '`explain apim.oauth_config` lists its keys'],
  // The key that is acted on, of two equally near ones.
  ['[server]\n"http.socket.timeout" = 5', 'it belongs in [transport.passthru_http] or [transport.passthru_https]'],
  ['[server]\nworker_pool_size_core = 5', 'it belongs in [transport.passthru_http] or [transport.passthru_https]'],
  ['[database]\npassword = "x"', 'it belongs in [database.apim_db] or [database.shared_db]'],
  [
    '[database]\nvalidationQuery = "x"',
    'did you mean database.apim_db.validationQuery? It belongs in [database.apim_db]',
  ],
  ['[apim.cors]\nservice_url = "x"', 'it belongs in [apim.key_manager] or [apim.workflow]'],
  ['[transport]\nnothing.like.it = 1', '`explain transport` lists its keys'],
]

for (const [toml, hint] of WRONG_SECTION) {
  test(`a key in the wrong section: ${JSON.stringify(toml)}`, t => {
    const home = temporaryHome(t, { 'deployment.toml': toml })
    assert.deepEqual(
      examine(home, [], join(home, 'data')).unknown.map(diagnostic => diagnostic.hint),
      [hint],
    )
  })
}

/** Empty tables are checked like others. */
const EMPTY: readonly (readonly [toml: string, said: string])[] = [
  ['[[management]]', 'F:1: management: cannot be repeated (write [management], not [[management]])'],
  ['[servr]', 'F:1: servr: unknown section (did you mean [server]?)'],
  [
    '[transport.passthru_http.listner]',
    'F:1: transport.passthru_http.listner: unknown section (`explain` lists the sections)',
  ],
  [
    '[apim]\n[transport]\n[transport.passthru_http.listener]\n[apim.cors]\n[custom_keystore.mine]\n[oauth.grant_type]\n[passthru_http]',
    '',
  ],
  [
    '[server.hostname]',
    'F:1: server.hostname = a table: expected a host name or an IP address (write one value after an equals sign)',
  ],
  [
    'server = {}\nmanagement.x = {}',
    'F:2: management.x: unknown key in [management] (`explain management` lists its keys)',
  ],
]

/** A table for a value, and a value for a table. */
const KINDS: readonly (readonly [toml: string, said: string])[] = [
  ['server = 5', 'F:1: server = a value: is a section (write [server] above its keys)'],
  ['server = ["a"]', 'F:1: server = a list: is a section (write [server] above its keys)'],
  [
    '[transport]\npassthru_http = true',
    'F:2: transport.passthru_http = a value: is a section (write [transport.passthru_http] above its keys)',
  ],
  [
    '[server]\nhostname.name = "a"',
    'F:2: server.hostname = a table: expected a host name or an IP address (write one value after an equals sign)',
  ],
  [
    '[server.hostname]\nname = "a"',
    'F:1: server.hostname = a table: expected a host name or an IP address (write one value after an equals sign)',
  ],
]

for (const [toml, said] of [...EMPTY, ...KINDS]) {
  test(`a table in place of a value, or a value in place of a table, is one error: ${JSON.stringify(toml)}`, t => {
    const home = temporaryHome(t, { 'deployment.toml': toml })
    const { errors, unknown } = examine(home, [], join(home, 'data'))
    const lines = [...errors, ...unknown].map(diagnostic =>
      formatDiagnostic(diagnostic).replaceAll(join(home, 'deployment.toml'), 'F'),
    )
    assert.deepEqual(lines, said === '' ? [] : [said])
  })
}
