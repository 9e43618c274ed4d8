/**
 * Scopes of the management API, and the roles of which a user must have one to be given them. They are those of the
 * reference platform, as far as there is something here that asks for them.
 */

export const ADMIN_ROLE = 'admin'
/** Of users who may have applications, publish APIs, or run them. */
const SUBSCRIBER = 'Internal/subscriber'
const PUBLISHER = 'Internal/publisher'
const CREATOR = 'Internal/creator'

export const MANAGEMENT_SCOPES: Readonly<Record<string, readonly string[]>> = {
  'apim:app_manage': [ADMIN_ROLE, SUBSCRIBER],
  'apim:subscribe': [ADMIN_ROLE, SUBSCRIBER],
  'apim:sub_manage': [ADMIN_ROLE, SUBSCRIBER],
  'apim:api_key': [ADMIN_ROLE, SUBSCRIBER],
  'apim:api_view': [ADMIN_ROLE, PUBLISHER, CREATOR],
  'apim:api_publish': [ADMIN_ROLE, PUBLISHER],
  'apim:subscription_view': [ADMIN_ROLE, PUBLISHER],
  'apim:subscription_block': [ADMIN_ROLE, PUBLISHER],
  'apim:admin': [ADMIN_ROLE],
  internal_user_mgt_list: [ADMIN_ROLE],
  internal_user_mgt_view: [ADMIN_ROLE],
  internal_user_mgt_create: [ADMIN_ROLE],
  internal_user_mgt_update: [ADMIN_ROLE],
  internal_user_mgt_delete: [ADMIN_ROLE],
}
