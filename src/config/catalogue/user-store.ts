/** `[user_store]`: the user store; property names are those of the reference platform. */
import { isTrue } from '../conditions.ts'
import { actsIf, withAliases, inert, type Key, live, numberIn, ofKeyManager, section } from '../key.ts'
import { choice, integer, duration, flag, scalar, secret, text } from '../kinds.ts'

const DATABASE = 'users are kept in the database, and always read from there'
const BROWSER = 'there is no page on which users choose names and passwords'
const LDAP = 'users are kept in the database; there is no LDAP client'
const HOUR_MS = 3_600_000

/** Five to thirty characters, none of them empty. */
const PATTERN = '^[\\S]{5,30}$'

function ldapText(meaning: string): Key<string> {
  return inert(text('', meaning), LDAP)
}

/** Also accepts an empty text, which documents use for the default. */
function orEmpty(wrapped: Key<number>): Key<number> {
  return {
    ...wrapped,
    expects: `${wrapped.expects}, or empty`,
    schema: { anyOf: [wrapped.schema, { const: '' }] },
    read: given => (given === '' ? wrapped.defaultValue : wrapped.read(given)),
  }
}

/** Also accepts any negative number, with the same meaning as zero. */
function orLess(means: string, wrapped: Key<number>): Key<number> {
  const less = `less than 0 (${means})`
  return {
    ...wrapped,
    expects: `${wrapped.expects}, or ${less}`,
    range: `${wrapped.range}, or ${less}`,
    schema: { anyOf: [wrapped.schema, { type: 'integer', maximum: -1 }, { type: 'string', pattern: '^-\\d{1,15}$' }] },
    read: given => {
      const number = numberIn(given)
      return typeof number === 'number' && Number.isSafeInteger(number) && number < 0 ? number : wrapped.read(given)
    },
  }
}

export const userStore = section('user_store', 'The user store.', {
  type: inert(text('', 'Type of the store, such as `database_unique_id`; empty: a database.'), DATABASE),
  base_dn: ldapText('Base DN of the directory.'),
  connection_url: ldapText('Address of the directory.'),
  connection_name: ldapText('DN with which the gateway binds to the directory.'),
  connection_password: inert(secret('Password of `connection_name`.'), LDAP),
})

export const userStoreProperties = section(
  'user_store.properties',
  'Lookup and validation of users and groups.',
  {
    PasswordHashMethod: inert(
      choice('SHA-256', ['SHA', 'SHA-1', 'SHA-256', 'MD5', 'PLAIN_TEXT'], 'Hash of stored passwords.'),
      'passwords are always stored as argon2id',
    ),
    UserNameListFilter: ldapText('Filter that lists users.'),
    UserNameSearchFilter: ldapText('Filter that finds a user.'),
    UserEntryObjectClass: ldapText('Object class of user entries.'),
    UserSearchBase: ldapText('Base DN of users.'),
    GroupSearchBase: ldapText('Base DN of groups.'),
    UserNameAtribute: withAliases(['UserNameAttribute'], ldapText('Attribute with the unique name of a user.')),
    PasswordJavaScriptRegEx: inert(text(PATTERN, 'Pattern of passwords, checked in the browser.'), BROWSER),
    UsernameJavaScriptRegEx: inert(text(PATTERN, 'Pattern of user names, checked in the browser.'), BROWSER),
    UsernameJavaRegEx: text(PATTERN, 'Pattern that a whole user name must match.'),
    PasswordJavaRegEx: text(PATTERN, 'Pattern that a whole password must match.'),
    RolenameJavaRegEx: text(PATTERN, 'Pattern that a whole role name must match.'),
    ReadGroups: inert(flag(true, 'Read groups from the store.'), DATABASE),
    WriteGroups: inert(flag(true, 'Write groups to the store.'), DATABASE),
    GroupNameListFilter: ldapText('Filter that lists groups.'),
    GroupEntryObjectClass: ldapText('Object class of group entries.'),
    GroupNameSearchFilter: ldapText('Filter that finds a group.'),
    GroupNameAttribute: ldapText('Attribute with the unique name of a group.'),
    MembershipAttribute: ldapText('Attribute with the members of a group.'),
    MembershipAttributeRange: inert(
      integer(1500, 'members', 1, 1_000_000, 'Members that the directory lists in one response.'),
      LDAP,
    ),
    UserRoleCacheEnabled: withAliases(
      ['UserRolesCacheEnabled'],
      inert(flag(true, 'Cache the roles of users.'), DATABASE),
    ),
    UserDNPattern: ldapText('Pattern that turns a user name into a DN.'),
    ReplaceEscapeCharactersAtUserLogin: ldapText('Escape special characters of user names in directory queries.'),
    MultiTenantRealmConfigBuilder: ldapText('Class that creates the store of a tenant.'),
    LDAPConnectionTimeout: inert(orEmpty(duration(5000, 'ms', 0, HOUR_MS, 'Connect timeout of the directory.')), LDAP),
    ReadTimeout: inert(
      orEmpty(orLess('no limit', duration(0, 'ms', 0, HOUR_MS, 'Longest wait for the directory; 0: no limit.'))),
      LDAP,
    ),
    RetryAttempts: inert(orEmpty(integer(0, 'tries', 0, 100, 'Retries after a timeout.')), LDAP),
    SCIMEnabled: ofKeyManager(
      actsIf(isTrue('management.enable'), live(flag(false, 'Serve SCIM at `/scim2` of the management listener.'))),
    ),
    kdcEnabled: inert(flag(false, 'Let the directory issue Kerberos tickets.'), LDAP),
    ConnectionPoolingEnabled: inert(flag(false, 'Pool connections to the directory.'), LDAP),
    BackLinksEnabled: inert(flag(false, 'Read the groups of a user from the entry of the user.'), LDAP),
    UserCoreCacheTimeOut: inert(duration(5, 'm', 0, 525_600, 'Lifetime of cached users.'), DATABASE),
    '<name>': inert(scalar('A property of the user store class.'), 'user store classes cannot be loaded'),
    CaseInsensitiveUsername: flag(false, 'Ignore the case of user names.'),
  },
  {
    rules: [
      {
        keys: ['ReadTimeout'],
        must: 'ReadTimeout of zero or less waits for ever: set the longest wait in milliseconds',
        severity: 'warning',
        holds: it => it.ReadTimeout > 0,
      },
      {
        keys: ['PasswordHashMethod'],
        must: 'PasswordHashMethod names a hash that protects no password: choose SHA-256',
        severity: 'warning',
        holds: it => it.PasswordHashMethod === 'SHA-256',
      },
    ],
  },
)
