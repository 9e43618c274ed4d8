/** Hints for values that their key does not take: an accepted spelling of the value, where there is one. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { examine } from '../../src/config/load.ts'
import { temporaryHome } from './temporary-home.ts'

const PASSTHRU = '[transport.passthru_http]\n'

const HINTS: readonly (readonly [toml: string, hint: string])[] = [
  [`${PASSTHRU}keepalive.timeout = "5 minutes"`, 'write "5m"'],
  [`${PASSTHRU}keepalive.timeout = "200 Millis"`, 'write "200ms"'],
  [`${PASSTHRU}keepalive.timeout = "1H"`, 'write "1h"'],
  [`${PASSTHRU}keepalive.timeout = "3 weeks"`, 'the default is keepalive.timeout = 75000'],
  [`${PASSTHRU}keepalive.timeout = "soon"`, 'the default is keepalive.timeout = 75000'],
  ['[server]\nhostname = "https://gw.example.com/"', 'write "gw.example.com"'],
  ['[server]\nhostname = "gw.example.com:8243"', 'write "gw.example.com"'],
  ['[server]\nhostname = "http://[::1]:80"', 'write "::1"'],
  ['[server]\nhostname = "two words"', 'the default is hostname = "localhost"'],
  ['[server]\nhostname = 5', 'write it in quotes: "5"'],
  ['[server]\noffset = " 1_000"', 'write it without quotes: 1000'],
  ['[server]\noffset = "1,000"', 'write it without quotes: 1000'],
  ['[qpid.heartbeat]\ntimeout_factor = "2,0"', 'write it without quotes: 2'],
  ['[qpid.heartbeat]\ntimeout_factor = "2,55"', 'write it without quotes: 2.55'],
  ['[server]\noffset = "2,5"', 'the default is offset = 0'],
  ['[server]\noffset = [1]', 'write it without brackets'],
  ['[server]\nmode = "Single"', 'did you mean "single"?'],
  ['[server]\nmode = "singel"', 'did you mean "single"?'],
  ['[server]\nmode = "many"', 'the default is mode = "single"'],
  ['[server]\nenableSwA = "off"', 'write false'],
  ['[server]\nenableSwA = 1', 'write true'],
  ['[server]\nenableSwA = "perhaps"', 'the default is enableSwA = false'],
  ['[access_log]\npath = true', 'write it in quotes: "true"'],
  ['[access_log]\npath = 2026-11-21', 'write it in quotes: "2026-11-21"'],
  ['[access_log]\npath = ["a", "b"]', 'the default is path = "access.log"'],
  ['[super_admin]\npassword = 5', 'write it in quotes'],
  ['[super_admin]\npassword = ["a"]', 'write it without brackets'],
  ['[super_admin]\npassword = ["a", "b"]', 'it is not shown, because it is a secret'],
]

for (const [toml, hint] of HINTS) {
  test(`the hint for ${toml.split('\n')[1]} is: ${hint}`, t => {
    const home = temporaryHome(t, { 'deployment.toml': toml })
    const { errors } = examine(home, [], join(home, 'data'))
    assert.deepEqual(
      errors.map(diagnostic => diagnostic.hint),
      [hint],
    )
  })
}
