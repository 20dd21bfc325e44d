//! Extension points, dispatch, session and statement.
