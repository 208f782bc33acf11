//! A session that travels and whose lease another device holds is not to be changed here.
